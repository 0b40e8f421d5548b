"""GRPO as a whole: groups, its metrics, the same training under every plan (I1),
the same run twice (I8), its examples on real rows."""
import json
import unittest

from support import Case, SOURCE, TINY, read_rows, tree_bytes, without_times

ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]
FOUR_DEVICES = ["cluster.devices_per_node=4", "cluster.workers_per_node=2"]
PLANS = {
    "data parallel": ["plan=data_parallel", *FOUR_DEVICES],
    "disjoint groups": ["plan=openrlhf", *FOUR_DEVICES],
    "training apart": ["plan=separation", *FOUR_DEVICES],
}
METRICS = ["actor/pg_loss", "actor/kl_loss", "actor/entropy", "actor/grad_norm",
           "frac_reward_zero_std", "critic/score/mean",
           "critic/advantages/max", "reward/regex/mean",
           "response_length/mean", "timing_s/reward", "timing_s/ref",
           "timing_s/update_actor", "training/rollout_probs_diff_mean"]
PROBLEMS = SOURCE / "tests/golden/data/rows/problems.jsonl"


class Grpo(Case):
    def grpo(self, *overrides):
        return ["train", "/dev/null", "workflow=grpo", "run.name=grpo",
                "run.steps=3", "run.save_every=0",
                "models.actor.path=data/base",
                "models.actor.optimizer.lr=1e-3",
                "data.train=data/prompts.jsonl", "data.batch_size=6",
                "data.max_prompt_tokens=32", "rollout.n=4",
                "rollout.max_new_tokens=12", "algorithm.mini_batches=4",
                "reward.kind=rule", "reward.rule=regex:kind", *overrides]

    def train(self, name, *overrides):
        self.troupe(*self.grpo(f"run.name={name}", *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def samples(self, name):
        return read_rows(self.run_folder(name) / "samples.jsonl")

    def test_answers_to_a_prompt_are_compared(self):
        self.troupe(*self.grpo(*ONE_DEVICE, "algorithm.kl_coef=0.01",
                               "algorithm.clip_ratio=[0.2, 0.28]"))
        line = self.metrics("grpo")[3]
        self.assertEqual([name for name in METRICS if name not in line], [])
        self.assertFalse([name for name in line if name.startswith(
            ("critic/values", "critic/vf", "timing_s/values"))])
        step = [s for s in self.samples("grpo") if s["step"] == 3]
        self.assertEqual(len(step), 24)
        groups = [step[i:i + 4] for i in range(0, 24, 4)]
        for group in groups:
            self.assertEqual(len({s["prompt"] for s in group}), 1)
        alike = sum(len({s["score"] for s in group}) == 1 for group in groups)
        self.assertAlmostEqual(line["frac_reward_zero_std"], alike / 6)
        config = (self.latest("grpo") / "actor/config.json").read_text()
        self.assertIn("LlamaForCausalLM", config)

    def test_remax_compares_with_the_greedy_answer(self):
        self.troupe(*self.grpo(*ONE_DEVICE, "algorithm.advantage=remax",
                               "algorithm.kl_in=none", "rollout.n=2"))
        line = self.metrics("grpo")[1]
        self.assertNotIn("frac_reward_zero_std", line)
        self.assertEqual(line["reward/regex/mean"], line["critic/score/mean"])
        first = line["critic/greedy_score/mean"]
        self.troupe(*self.grpo(*ONE_DEVICE, "run.name=greedy",
                               "algorithm.kl_in=none", "rollout.n=2",
                               "rollout.top_k=1"))
        self.assertEqual(self.metrics("greedy")[1]["critic/score/mean"], first)

    def test_every_plan_trains_alike_I1(self):
        # scores differ within a group
        rule = ["reward.rule=null",
                "reward.weights={'regex:a': 1, 'regex:e': 1, 'regex:i': 1}"]
        self.train("recorded", *rule, *ONE_DEVICE)
        replay = f"run.replay={self.run_folder('recorded')}/samples.jsonl"
        reference = self.train("one", replay, *rule, *ONE_DEVICE)
        self.assertGreater(abs(reference[1]["actor/pg_loss"]), 0)
        for name, overrides in PLANS.items():
            found = self.train("other", replay, "run.resume=fresh", *rule,
                               *overrides)
            self.assert_alike(name, reference, found)

    def test_a_repeated_run_is_bit_identical_I8(self):
        self.assertEqual(self.train("a", *PLANS["data parallel"]),
                         self.train("b", *PLANS["data parallel"]))
        weights = [tree_bytes(self.latest(name), "*/*.safetensors")
                   for name in "ab"]
        self.assertEqual(*weights)

    def test_its_variants(self):
        for name, overrides, words in (
                ("rloo", ["algorithm.advantage=rloo"], []),
                ("dr_grpo", ["algorithm.whiten=false",
                             "algorithm.loss_mean=horizon"], []),
                ("sequence", ["algorithm.loss_mean=sequence",
                              "algorithm.dual_clip=3"], []),
                ("reinforce_pp", ["algorithm.advantage=reinforce_pp",
                                  "algorithm.kl_in=reward"],
                 ["actor/reward_kl_penalty"]),
                ("recompute", ["algorithm.old_logprobs=recompute",
                               "algorithm.kl_in=none"], []),
                ("model", ["reward.kind=model", "reward.rule=null",
                           "models.reward.path=data/scorer"], [])):
            lines = self.train(name, "run.steps=1", *ONE_DEVICE, *overrides)
            for word in ["actor/pg_loss", "critic/advantages/mean", *words]:
                self.assertIn(word, lines[1], name)

    def test_what_grpo_cannot_use_is_refused(self):
        for override, words in (
                ("algorithm.advantage=gae", ["algorithm.advantage", "group"]),
                ("algorithm.value_clip=0.3", ["algorithm.value_clip"]),
                ("algorithm.kl_in=reward", ["algorithm.kl_in", "loss"]),
                ("rollout.n=1", ["rollout.n", "group"]),
                ("models.critic.path=data/scorer", ["models.critic"])):
            done = self.troupe(*self.grpo(override), code=2)
            for word in words:
                self.assertIn(word, done.stderr, override)
        done = self.troupe(*self.ppo("algorithm.advantage=group"), code=2)
        self.assertIn("gae", done.stderr)

    def test_the_gsm8k_example_runs_on_rows_like_gsm8ks(self):
        rows = PROBLEMS
        python = SOURCE / "examples/rewards/gsm8k.py"
        for name, reward in (("rule", []),
                             ("python", ["reward.kind=python",
                                         "reward.rule=null",
                                         f"reward.file={python}"])):
            self.troupe(
                "train", SOURCE / "examples/gsm8k/grpo.yaml",
                f"run.name={name}", "run.steps=2",
                "models.actor.path=data/base", f"data.train={rows}",
                "data.batch_size=4", "data.max_prompt_tokens=112",
                "data.overlong=truncate", "rollout.n=2",
                "rollout.max_new_tokens=16", "algorithm.mini_batches=1",
                *ONE_DEVICE, *reward)
            line = self.metrics(name)[2]
            self.assertEqual(line["reward/errors"], 0)
            # an untrained model of a small language writes no number
            self.assertEqual(line["critic/score/max"], 0)
            self.assertEqual(line["frac_reward_zero_std"], 1)
            self.assertIn("number", self.samples(name)[0]["prompt"])
        self.assertEqual(line["reward/formatted/mean"], 0)

    def test_the_python_example_knows_every_answer(self):
        rows = PROBLEMS
        scope = {}
        exec((SOURCE / "examples/rewards/gsm8k.py").read_text(), scope)
        score = scope["compute_score"]
        answers = [json.loads(line)["answer"] for line in rows.open()]
        for answer in answers:
            self.assertEqual(score("", answer, answer)["score"], 1)
            bare = answer.rpartition("####")[2].strip()
            self.assertEqual(score("", f"it is {bare}", answer)["score"], 0)
            self.assertEqual(score("", f"#### {bare}", bare)["score"], 1)


if __name__ == "__main__":
    unittest.main()
