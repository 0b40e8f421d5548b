"""Margins of reward models, KTO and texts beside reinforcement learning in whole
runs: the same training under every plan (I1), the same bits after a resume (I8)."""
import json
import unittest

from support import (CONSTANT, Case, read_rows, tree_bytes, without_times,
                     write_rows)

ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]
FOUR_DEVICES = ["cluster.devices_per_node=4", "cluster.workers_per_node=2"]
# presets that need responses are for workflows that generate
PLANS = {"grpo": ("interleaving", "separation", "deepspeed_chat"),
         "kto": ("megatron", "deepspeed_chat", "data_parallel"),
         "reward": ("megatron", "deepspeed_chat", "data_parallel")}
PTX = ["data.ptx=data/sft.jsonl", "algorithm.ptx_coef=0.5"]


class Preferences(Case):
    def setUp(self):
        super().setUp()
        pairs = read_rows(self.folder / "data/pairs_train.jsonl")[:60]
        for i, row in enumerate(pairs):
            row["gap"] = i % 4 / 2
        write_rows(self.folder / "margins.jsonl", pairs)
        write_rows(self.folder / "labels.jsonl", [
            {"prompt": row["prompt"], "completion": row[side],
             "label": side == "chosen"}
            for i, row in enumerate(pairs)
            for side in (("chosen", "rejected"), ("rejected",))[i % 2]])

    def arguments(self, workflow, *overrides):
        """Three steps of a small run; learning rates do not depend on their
        number."""
        own = {
            "reward": ["models.reward.path=data/scorer",
                       "models.reward.optimizer.lr=1e-3",
                       "models.reward.optimizer.schedule=constant",
                       "data.train=margins.jsonl", "data.fields.margin=gap",
                       "algorithm.center_coef=0.05", "data.batch_size=8"],
            "kto": ["models.actor.path=data/base",
                    "models.actor.optimizer.lr=1e-3", CONSTANT[0],
                    "data.train=labels.jsonl", "data.batch_size=9",
                    "data.max_tokens=64", "algorithm.beta=0.2",
                    "algorithm.undesirable_weight=0.6"],
            "grpo": ["models.actor.path=data/base",
                     "models.actor.optimizer.lr=1e-3", CONSTANT[0],
                     "data.train=data/prompts.jsonl", "data.batch_size=6",
                     "data.max_prompt_tokens=32", "rollout.n=4",
                     "rollout.max_new_tokens=12", "algorithm.mini_batches=2",
                     "algorithm.epochs=2", "reward.kind=rule",
                     "reward.weights={'regex:a': 1, 'regex:e': 1}", *PTX],
        }[workflow]
        return ["train", "/dev/null", f"workflow={workflow}",
                f"run.name={workflow}", "run.steps=3", "run.save_every=0",
                *own, *overrides]

    def train(self, workflow, name, *overrides):
        self.troupe(*self.arguments(workflow, f"run.name={name}",
                                    "run.resume=fresh", *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def trains_alike(self, workflow, *overrides):
        one = self.train(workflow, "one", *overrides, *ONE_DEVICE)
        for plan in PLANS[workflow]:
            self.assert_alike(f"{workflow} {plan}", one, self.train(
                workflow, "other", *overrides, f"plan={plan}", *FOUR_DEVICES))
        return one

    def resumes(self, workflow):
        """Four steps at once, and two after two."""
        plan = [f"plan={PLANS[workflow][0]}", *FOUR_DEVICES]
        self.troupe(*self.arguments(workflow, "run.name=whole", "run.steps=4",
                                    *plan))
        for steps in (2, 4):
            self.troupe(*self.arguments(workflow, "run.name=parts",
                                        f"run.steps={steps}", *plan))
        self.assertEqual(*[
            {step: without_times(line)
             for step, line in self.metrics(name).items()}
            for name in ("whole", "parts")])
        self.assertEqual(*[tree_bytes(self.latest(name), "*/*.safetensors")
                           for name in ("whole", "parts")])

    def test_margins_train_alike_under_every_plan_I1(self):
        one = self.trains_alike("reward")
        self.assertNotEqual(one, self.train(
            "reward", "plain", *ONE_DEVICE, "data.fields=null",
            "algorithm.center_coef=0"), "margins change the loss")

    def test_kto_trains_alike_under_every_plan_I1(self):
        one = self.trains_alike("kto")
        self.assertEqual(one[1]["train/kl"], 0, "the policy is the reference")
        self.assertGreater(one[3]["train/kl"], 0)
        self.assertIn("train/undesirable_reward", one[3])

    def test_kto_evaluates_alike_under_every_plan_I1(self):
        write_rows(self.folder / "held_out.jsonl",
                   read_rows(self.folder / "labels.jsonl")[:31])
        words = ["eval.data=held_out.jsonl", "eval.every=3"]
        without = self.train("kto", "without", *ONE_DEVICE)
        one = self.trains_alike("kto", *words)
        val = {name[len("val-core/held_out/"):]: value
               for name, value in one[3].items() if name.startswith("val-core")}
        self.assertEqual(set(val), {"loss", "accuracy", "kl",
                                    "desirable_reward", "undesirable_reward"})
        self.assertGreater(val["kl"], 0)
        self.assertGreater(val["desirable_reward"], val["undesirable_reward"])
        for name, value in without[3].items():
            self.assertEqual(value, one[3][name], name)

    def test_texts_beside_grpo_train_alike_under_every_plan_I1(self):
        self.train("grpo", "recorded", *ONE_DEVICE)
        replay = f"run.replay={self.run_folder('recorded')}/samples.jsonl"
        one = self.trains_alike("grpo", replay)
        without = self.train("grpo", "without", replay, *ONE_DEVICE,
                             "data.ptx=null", "algorithm.ptx_coef=null")
        self.assertNotIn("actor/ptx_loss", without[1])
        self.assertNotEqual(one[1]["actor/grad_norm"],
                            without[1]["actor/grad_norm"])
        # two epochs over six rows
        self.assertLess(one[3]["actor/ptx_loss"], one[1]["actor/ptx_loss"] + 1)

    def test_texts_beside_ppo_are_shared_among_ranks_and_steps(self):
        found = {}
        for name, overrides in (("one", ONE_DEVICE),
                                ("four", ["plan=data_parallel",
                                          *FOUR_DEVICES])):
            self.troupe(*self.ppo(*PTX, "data.ptx_batch_size=5",
                                  f"run.name={name}", "run.steps=1",
                                  *overrides))
            found[name] = self.metrics(name)[1]
            self.assertNotIn("critic/ptx_loss", found[name])
        self.assertEqual(found["one"]["actor/ptx_tokens"],
                         found["four"]["actor/ptx_tokens"])
        self.assertAlmostEqual(found["one"]["actor/ptx_loss"],
                               found["four"]["actor/ptx_loss"], 4)

    def test_texts_count_in_the_throughput(self):
        found = {}
        for name, texts in (("with", [*PTX, "data.ptx_batch_size=5"]),
                            ("without", [])):
            self.troupe(*self.ppo(*texts, f"run.name={name}", "run.steps=1",
                                  *ONE_DEVICE))
            found[name] = self.metrics(name)[1]
        more = (found["with"]["perf/total_num_tokens"]
                - found["without"]["perf/total_num_tokens"])
        with_loss = found["with"]["actor/ptx_tokens"]
        self.assertGreater(more, with_loss, "prompts have no loss")

    def test_a_resume_has_the_same_bits_I8(self):
        for workflow in ("reward", "kto", "grpo"):
            with self.subTest(workflow):
                self.resumes(workflow)
                for name in ("whole", "parts"):
                    self.run_folder(name).rename(
                        self.run_folder(f"{workflow}_{name}"))

    def test_a_plan_knows_the_tokens_of_texts(self):
        def step_s(*overrides):
            words = [word for word in self.arguments("grpo", *overrides)[1:]
                     if word not in ("/dev/null", *PTX) or word in overrides]
            done = self.troupe("plan", "simulate", "/dev/null", "--json",
                               *words, *FOUR_DEVICES, "--preset",
                               "data_parallel", "--hardware", "laptop")
            tasks = json.loads(done.stdout)["tasks"]
            return max(t["end_s"] - t["start_s"] for t in tasks
                       if t["name"].startswith("actor_train"))

        self.assertGreater(step_s(*PTX, "data.ptx_batch_size=48"),
                           1.5 * step_s())

    def test_a_bad_row_of_texts_stops_a_run_before_it_starts(self):
        write_rows(self.folder / "texts.jsonl", [{"text": "a"}, {"txt": "b"}])
        done = self.troupe(*self.arguments("grpo", "data.ptx=texts.jsonl",
                                           *ONE_DEVICE), code=2)
        self.assertIn("texts.jsonl:2:", done.stderr)
        done = self.troupe(*self.arguments("kto", "data.train=margins.jsonl",
                                           *ONE_DEVICE), code=2)
        self.assertIn("margins.jsonl:1: completion: expected text", done.stderr)


if __name__ == "__main__":
    unittest.main()
