"""Dynamic sampling: a step generates in rounds until enough groups have responses
of different rewards, alike under every plan (I1) and in a continued run (I8)."""
import os
import signal
import unittest

from support import Case, read_rows, tree_bytes, without_times

ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]
FOUR_DEVICES = ["cluster.devices_per_node=4", "cluster.workers_per_node=2"]
PLANS = ("interleaving", "separation", "deepspeed_chat")
GROUPS = 4


class DynamicSampling(Case):
    def run_of(self, name, *overrides):
        """Some three of four groups have one reward: about one in four answers
        has a z."""
        return ("train", "/dev/null", "workflow=grpo", f"run.name={name}",
                "run.steps=4", "run.save_every=0",
                "models.actor.path=data/base",
                "models.actor.optimizer.lr=1e-3",
                "models.actor.optimizer.schedule=constant",
                "data.train=data/prompts.jsonl",
                f"data.batch_size={GROUPS}", "data.max_prompt_tokens=32",
                "rollout.n=3", "rollout.max_new_tokens=6",
                "algorithm.mini_batches=2", "algorithm.kl_coef=0.01",
                "algorithm.dynamic_sampling.rounds=4",
                "reward.kind=rule", "reward.rule=regex:z", *overrides)

    def grpo(self, name, *overrides):
        self.troupe(*self.run_of(name, *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def groups(self, name):
        """{step: the scores of each group of its samples}."""
        steps = {}
        for sample in read_rows(self.run_folder(name) / "samples.jsonl"):
            steps.setdefault(sample["step"], {}).setdefault(
                sample["prompt"], []).append(sample["score"])
        return steps

    def test_a_step_trains_on_groups_with_different_rewards(self):
        lines = self.grpo("one", *ONE_DEVICE)
        rounds = [lines[step]["rollout/rounds"] for step in (1, 2, 3, 4)]
        self.assertGreater(max(rounds), 1)
        self.assertLessEqual(max(rounds), 4)
        for step, groups in self.groups("one").items():
            line = lines[step]
            alike = sum(len(set(scores)) == 1 for scores in groups.values())
            self.assertAlmostEqual(line["frac_reward_zero_std"], alike / GROUPS)
            self.assertEqual(len(groups), GROUPS)
            seen = line["rollout/rounds"] * GROUPS
            left = line["rollout/groups_alike"] + line["rollout/groups_beyond"]
            kept = GROUPS - alike
            self.assertEqual(seen - left, kept)
            if line["rollout/rounds"] < 4:
                self.assertEqual(alike, 0, "a step stops when it has enough")

    def test_rounds_that_are_not_needed_do_not_run(self):
        lines = self.grpo("alike", *ONE_DEVICE, "reward.rule=regex:QQQ")
        self.assertEqual(lines[1]["rollout/rounds"], 4)
        lines = self.grpo("once", *ONE_DEVICE, "run.steps=1", "rollout.n=8",
                          "rollout.max_new_tokens=12", "reward.rule=regex:e")
        self.assertLess(lines[1]["rollout/rounds"], 4)
        names = {s["name"] for s in self.slices("once")}
        ran = int(lines[1]["rollout/rounds"])
        self.assertIn("actor_gen", " ".join(names))
        self.assertEqual(
            sum(s["name"] == "keep_groups" for s in self.slices("once")), ran)

    def test_it_trains_alike_under_every_plan_I1(self):
        one = self.grpo("one", *ONE_DEVICE)
        for plan in PLANS:
            other = self.grpo(plan, f"plan={plan}", *FOUR_DEVICES)
            self.assertEqual(self.groups("one"), self.groups(plan))
            self.assert_alike(plan, one, other)

    def test_a_continued_run_has_the_same_bits_I8(self):
        plan = ["plan=separation", "run.save_every=2", *FOUR_DEVICES]
        self.grpo("whole", *plan)
        self.grpo("halves", "run.steps=2", *plan)
        self.grpo("halves", *plan)
        self.assertEqual(*[tree_bytes(self.latest(name), "*/*.safetensors")
                           for name in ("whole", "halves")])
        self.assertEqual(self.groups("whole"), self.groups("halves"))

    def test_with_a_lag_a_continued_run_has_the_same_bits_too_I8(self):
        plan = ["plan=async", "run.save_every=2", *FOUR_DEVICES,
                "algorithm.old_logprobs=recompute"]
        whole = self.grpo("whole", *plan)
        self.assertGreater(
            max(line["rollout/rounds"] for line in whole.values()), 1)
        self.grpo("halves", "run.steps=2", *plan)
        self.grpo("halves", *plan)
        self.assertEqual(*[tree_bytes(self.latest(name), "*/*.safetensors")
                           for name in ("whole", "halves")])

    def test_a_worker_lost_among_rounds_costs_no_bit_I5_I8(self):
        plan = ["plan=separation", "run.save_every=5", "run.steps=20",
                *FOUR_DEVICES]
        process = self.start(*self.run_of("lost", *plan))
        self.wait_for_step("lost", 7)
        os.kill(self.workers()[1], signal.SIGKILL)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.status("lost")["attempt"], 2)
        self.grpo("undisturbed", *plan)
        for got, wanted in zip(self.outcome("lost"),
                               self.outcome("undisturbed")):
            self.assertEqual(got, wanted)

    def test_recorded_samples_are_refused(self):
        with self.assertRaisesRegex(AssertionError, "dynamic_sampling.rounds=1"):
            self.grpo("replayed", "run.replay=data/prompts.jsonl", *ONE_DEVICE)


if __name__ == "__main__":
    unittest.main()
