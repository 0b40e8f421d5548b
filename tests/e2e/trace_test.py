"""`troupe trace` on the run of a user-defined program: its calls are in the run folder,
not in the troupe binary."""
import json
import unittest

from support import BUILD, TINY, Case, Process

BEST_OF_N = TINY.parent / "best_of_n"


class UserTrace(Case):
    def test_the_summary_knows_calls_of_a_user_program(self):
        done = Process(self, [
            "train", BEST_OF_N / "best_of_n.yaml", "run.steps=2",
            "models.actor.path=data/base", "data.train=data/prompts.jsonl",
            "data.batch_size=8", "rollout.max_new_tokens=12",
            f"best_of_n.tool={BEST_OF_N}/is_kind.sh"],
            program=BUILD / "examples/best_of_n").finish()
        self.assertEqual(done.code, 0, done.err)
        summary = json.loads(self.troupe(
            "trace", "summary", "runs/best_of_n", "--json").stdout)
        self.assertEqual(summary["critical_path"],
                         ["actor_gen", "check", "pick_best", "actor_train"])
        self.assertRegex(done.out, r"(?m)^  check +\d")
        self.assertRegex(done.out, r"(?m)^  pick_best +\d")
        self.assertNotIn("advantages", done.out)
        line = self.metrics("best_of_n")[2]
        self.assertGreater(line["timing_s/check"], 0)
        self.assertNotIn("timing_s/adv", line)


class Checkpoints(Case):
    def test_copies_and_writes_are_seconds_per_step(self):
        self.troupe(*self.ppo("run.steps=12", "run.save_every=3"))
        slices = self.slices("ppo")
        summary = json.loads(self.troupe(
            "trace", "summary", "runs/ppo", "--json").stdout)
        for name in ("copy", "write"):
            own = [s for s in slices if s["name"] == name
                   and s["track"].startswith(("device", "writer"))]
            self.assertEqual({s["step"] for s in own}, {2, 5, 8, 11})
            lengths = []
            for step in (2, 5, 8, 11):
                of_step = [s for s in own if s["step"] == step]
                lengths.append(max(s["end"] for s in of_step)
                               - min(s["begin"] for s in of_step))
            took = summary["tasks"][name]["step_s"] * 1e6
            self.assertTrue(min(lengths) - 1 <= took <= max(lengths) + 1,
                            f"{name}: {took} us of {lengths}")


if __name__ == "__main__":
    unittest.main()
