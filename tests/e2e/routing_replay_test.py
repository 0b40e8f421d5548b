"""Routing replay in whole runs: the actor trains with the experts that generation
chose, alike under every plan (I1) and resumed to the bit (I8)."""
import subprocess
import sys
import unittest

from support import CONSTANT, SOURCE, Case, read_rows, tree_bytes, without_times

ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]
FOUR_DEVICES = ["cluster.devices_per_node=4", "cluster.workers_per_node=2"]
PLANS = ("deepspeed_chat", "openrlhf")
REPLAY = ["algorithm.routing_replay=true"]
MISMATCH = "moe/routing_mismatch"
CHOSEN = 2  # of 8 experts


class RoutingReplay(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([sys.executable, "-B",
                        SOURCE / "examples/recipes/small/make_models.py",
                        cls.shared_folder], check=True, timeout=60)

    def grpo(self, *overrides):
        return ["train", "/dev/null", "workflow=grpo", "run.name=grpo",
                "run.steps=3", "run.save_every=0",
                "models.actor.path=data/experts",
                "models.actor.optimizer.lr=1e-3", CONSTANT[0],
                "data.train=data/prompts.jsonl", "data.batch_size=6",
                "data.max_prompt_tokens=32", "rollout.n=4",
                "rollout.max_new_tokens=12", "algorithm.mini_batches=2",
                "reward.kind=rule",
                "reward.weights={'regex:a': 1, 'regex:e': 1, 'regex:i': 1}",
                *overrides]

    def train(self, name, *overrides):
        self.troupe(*self.grpo(f"run.name={name}", *overrides))
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def test_it_trains_with_the_experts_of_generation(self):
        lines = self.train("replayed", *REPLAY, *ONE_DEVICE)
        # the second mini-batch's router has learned from the first
        self.assertGreater(max(line[MISMATCH] for line in lines.values()), 0)
        for line in lines.values():
            self.assertLess(line[MISMATCH], 0.2)
            self.assertTrue(1 / 8 < line["moe/balance"] <= 1)
        for sample in read_rows(self.run_folder("replayed") / "samples.jsonl"):
            record = sample["keys"]["routed_experts"]
            mask = sample["loss_mask"]
            width = len(record) // len(mask)
            self.assertEqual(width % CHOSEN, 0)
            self.assertEqual([expert >= 0 for expert in record[::width]],
                             [after == 1 for after in mask[1:]] + [False])
        own = self.train("own", *ONE_DEVICE)
        self.assertNotIn(MISMATCH, own[1])

    def test_recomputed_log_probabilities_replay_too(self):
        lines = self.train("recomputed", "algorithm.old_logprobs=recompute",
                           "algorithm.mini_batches=1", *REPLAY, *ONE_DEVICE)
        for line in lines.values():
            self.assertLess(abs(line["actor/ppo_kl"]), 1e-5)

    def test_it_trains_alike_under_every_plan_I1(self):
        self.train("recorded", *REPLAY, *ONE_DEVICE)
        replay = f"run.replay={self.run_folder('recorded')}/samples.jsonl"
        one = self.train("one", replay, *REPLAY, *ONE_DEVICE)
        self.assertGreater(abs(one[1]["actor/pg_loss"]), 0)
        for plan in PLANS:
            other = self.train("other", "run.resume=fresh", f"plan={plan}",
                               replay, *REPLAY, *FOUR_DEVICES)
            self.assert_alike(plan, one, other)

    def test_a_resumed_run_has_the_same_bits_I8(self):
        plan = ["plan=openrlhf", "run.save_every=2", *REPLAY, *FOUR_DEVICES]
        self.train("whole", "run.steps=4", *plan)
        self.train("halves", "run.steps=2", *plan)
        self.train("halves", "run.steps=4", *plan)
        self.assertEqual(*[tree_bytes(self.latest(name), "*/*.safetensors")
                           for name in ("whole", "halves")])

    def test_models_without_what_a_setting_needs_are_refused(self):
        for override, words in (
                (REPLAY[0], "algorithm.routing_replay"),
                ("models.actor.optimizer.router_bias_rate=0.001",
                 "router_bias_rate")):
            done = self.troupe(*self.grpo("models.actor.path=data/base",
                                          override), code=2)
            self.assertIn(words, done.stderr)
            self.assertIn("family llama", done.stderr)


if __name__ == "__main__":
    unittest.main()
