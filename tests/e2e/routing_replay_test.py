"""Routing replay in whole runs: the actor trains with the experts that generation
chose, alike under every plan (I1) and resumed to the bit (I8)."""
import subprocess
import sys
import unittest

from recorded_rollouts import ONE_DEVICE, RecordedRollouts
from support import SOURCE, Case, read_rows

REPLAY = ["algorithm.routing_replay=true"]
MISMATCH = "moe/routing_mismatch"
CHOSEN = 2  # of 8 experts


class RoutingReplay(RecordedRollouts, Case):
    actor = "data/experts"
    record = REPLAY

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([sys.executable, "-B",
                        SOURCE / "examples/recipes/small/make_models.py",
                        cls.shared_folder], check=True, timeout=60)

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
