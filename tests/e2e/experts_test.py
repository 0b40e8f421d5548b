"""Experts dealt to devices in whole runs: the actor trains as one device does (I1)
and resumes to the bit (I8), with the loss that balances experts."""
import subprocess
import sys
import unittest

import recorded_rollouts
from recorded_rollouts import FOUR_DEVICES, ONE_DEVICE, RecordedRollouts
from support import SOURCE, Case

PLAN = """{{calls: {{
  actor_gen: {{devices: 0-3, strategy: t4e4}},
  ref_inf: {{devices: 0-3, strategy: {scoring}}},
  rewards: {{devices: host}}, advantages: {{devices: host}},
  actor_train: {{devices: 0-3, strategy: {training}}}}}}}"""
BALANCED = "models.actor.optimizer.router_aux_loss_coef=0.01"


def plan(scoring, training):
    return "plan=" + " ".join(PLAN.format(scoring=scoring,
                                          training=training).split())


DEALT = [plan("d4e4", "d2t2e4"), plan("d2t2e4", "d4e4z1"),
         plan("d4", "p2t2e2s")]


class Experts(RecordedRollouts, Case):
    actor = "data/experts"
    more = ["algorithm.kl_coef=0.01", BALANCED]
    plans = recorded_rollouts.PLANS + tuple(
        text.removeprefix("plan=") for text in DEALT)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([sys.executable, "-B",
                        SOURCE / "examples/recipes/small/make_models.py",
                        cls.shared_folder], check=True, timeout=60)

    def test_a_run_with_dealt_experts_resumes_bit_identically_I8(self):
        for number, dealt in enumerate(DEALT[:2]):
            with self.subTest(plan=dealt):
                self.check_resumed(f"dealt{number}", dealt)

    def test_the_loss_of_balance_evens_experts_out(self):
        found = {}
        for name, weight in (("without", "0"), ("with", "1")):
            lines = self.train(
                name, f"{BALANCED.partition('=')[0]}={weight}", "run.steps=12",
                *ONE_DEVICE)
            found[name] = [lines[step]["moe/balance"] for step in (10, 11, 12)]
            self.assertEqual("moe/aux_loss" in lines[1], name == "with")
        self.assertGreater(sum(found["with"]), sum(found["without"]))

    def test_strategies_that_cannot_deal_are_refused(self):
        for training, words in (("d4e8", "e8"), ("d4e4z3", "z3")):
            done = self.troupe(*self.grpo(plan("d4", training), *FOUR_DEVICES),
                               code=3)
            self.assertIn(words, done.stderr)
        done = self.troupe(*self.grpo(plan("d4", "d4e4").replace(
            "t4e4", "d4e4"), *FOUR_DEVICES), code=3)
        self.assertIn("actor_gen", done.stderr)


if __name__ == "__main__":
    unittest.main()
