"""Evaluation beside training: it changes nothing, its numbers are those of the
command on the checkpoint, and the best checkpoint stays."""
import json
import math
import shutil
import unittest

from support import CONSTANT, TINY, Case, read_rows, tree_bytes, without_times

REWARD = "val-core/{}/reward/{}@{}"


def training_only(line):
    return {key: value for key, value in without_times(line).items()
            if not key.startswith("val-core/")}


class Eval(Case):
    evaluated = ("eval.data=data/prompts.jsonl", "eval.max_rows=8")

    def train(self, name, *overrides):
        self.troupe(*self.ppo(f"run.name={name}", *overrides))
        return self.metrics(name)

    def rows(self, name, step):
        return read_rows(self.run_folder(name) / f"eval/step_{step:06}.jsonl")

    def check_untouched(self, *overrides):
        plain = self.train("plain", *overrides)
        with_eval = self.train("evaluated", "eval.every=1", *self.evaluated,
                               *overrides)
        self.assertEqual({step: training_only(line)
                          for step, line in plain.items()},
                         {step: training_only(line)
                          for step, line in with_eval.items() if step > 0})
        self.assertEqual(*[tree_bytes(self.latest(name), "*/*.safetensors")
                           for name in ("plain", "evaluated")])
        return with_eval

    def test_training_is_the_same_to_the_bit_with_evaluation(self):
        lines = self.check_untouched()
        self.assertEqual(sorted(lines), [0, 1, 2, 3])
        for step, line in lines.items():
            scores = [row["score"] for row in self.rows("evaluated", step)]
            self.assertEqual(len(scores), 8)
            mean = line[REWARD.format("prompts", "mean", 1)]
            self.assertAlmostEqual(mean, sum(scores) / 8, places=5)
            self.assertGreater(line["timing_s/testing"], 0)
        self.assertEqual([key for key in lines[0] if not key.startswith(
            ("val-core/", "training/", "timing_s/testing", "step"))], [])
        means = [line[REWARD.format("prompts", "mean", 1)]
                 for line in lines.values()]
        self.assertGreater(len(set(means)), 1, "the actor does not move")

    def test_training_is_the_same_with_moves_and_lag(self):
        self.check_untouched(f"plan={TINY}/plans/lag.yaml", "run.save_every=1")

    def test_n_answers_give_mean_best_and_pass(self):
        lines = self.train("several", *self.evaluated, "eval.n=3",
                           "eval.temperature=1", "eval.at_start=false",
                           "eval.pass_at=0", "run.steps=1")
        self.assertNotIn(0, lines)
        rows = self.rows("several", 1)
        self.assertEqual(len(rows), 24)
        groups = [[row["score"] for row in rows[i:i + 3]]
                  for i in range(0, 24, 3)]
        self.assertTrue(any(len(set(group)) > 1 for group in groups))
        best = sum(map(max, groups)) / 8
        self.assertAlmostEqual(lines[1][REWARD.format("prompts", "best", 3)],
                               best, places=5)
        passed = sum(row["score"] >= 0 for row in rows) / 24
        self.assertAlmostEqual(lines[1]["val-core/prompts/pass@1"], passed)

    def test_any_plan_evaluates_alike_I1(self):
        found = []
        for plan in ("moved", "tensor", "groups"):
            lines = self.train(plan, *self.evaluated, "run.steps=1",
                               f"plan={TINY}/plans/{plan}.yaml")
            found.append((lines[0], [row["response"] for row in
                                     self.rows(plan, 0)]))
        for line, responses in found[1:]:
            self.assertEqual(responses, found[0][1])
            name = REWARD.format("prompts", "mean", 1)
            self.assertTrue(math.isclose(line[name], found[0][0][name],
                                         rel_tol=1e-5, abs_tol=1e-5))

    def test_the_command_finds_what_training_found(self):
        lines = self.train("run", *self.evaluated)
        done = json.loads(self.troupe("eval", "runs/run", "--json", "--out",
                                      "rows.jsonl").stdout)
        self.assertEqual(done["step"], 3)
        for name, value in done["metrics"].items():
            if name.startswith("val-core/"):
                self.assertEqual(value, lines[3][name])
        self.assertEqual(read_rows(self.folder / "rows.jsonl"),
                         self.rows("run", 3))
        other = json.loads(self.troupe(
            "eval", "runs/run", "--json", "--model", "data/base").stdout)
        for name, value in other["metrics"].items():
            if name.startswith("val-core/"):
                self.assertEqual(value, lines[0][name])
        self.assertFalse(list(self.folder.glob("runs/run/attempts/02")))

    def test_a_checkpoint_folder_is_evaluated_as_training_did(self):
        lines = self.train("run", *self.evaluated, "eval.temperature=1",
                           "eval.every=2", "run.save_every=2", "run.keep=0")
        for folder, step in (("checkpoints/step_000002", 2), ("latest", 3)):
            done = json.loads(self.troupe(
                "eval", "runs/run", "--json", "--model",
                f"runs/run/{folder}/actor/").stdout)
            self.assertEqual(done["step"], step)
            found = {name: value for name, value in done["metrics"].items()
                     if name.startswith("val-core/")}
            self.assertEqual(found, {name: lines[step][name] for name in found})

    def test_a_run_and_rows_of_any_name(self):
        self.troupe(*self.ppo('run.name="null"', "run.steps=1"))
        shutil.copy(self.folder / "data/prompts.jsonl",
                    self.folder / "[x].jsonl")
        done = json.loads(self.troupe(
            "eval", "runs/null", "--json", "--data", "[x].jsonl",
            "eval.max_rows=2").stdout)
        self.assertEqual(done["data"], "[x].jsonl")
        again = self.troupe("train", "runs/null")
        self.assertIn("runs/null: this run is finished", again.stdout)

    def test_a_resumed_run_has_the_same_evaluations(self):
        more = [*self.evaluated, *CONSTANT, "eval.every=2", "run.save_every=2"]
        whole = self.train("whole", "run.steps=4", *more)
        self.train("parts", "run.steps=2", *more)
        parts = self.train("parts", "run.steps=4", *more)
        self.assertEqual(*[{step: without_times(line)
                            for step, line in lines.items()}
                           for lines in (whole, parts)])

    def test_sft_and_reward_models_are_evaluated_on_held_out_rows(self):
        self.troupe(*self.sft("eval.data=data/sft.jsonl", "eval.max_rows=20",
                              "eval.every=1"))
        lines = self.metrics("sft")
        losses = [lines[step]["val-core/sft/loss"] for step in range(4)]
        self.assertAlmostEqual(losses[0], math.log(512), delta=1)
        self.assertLess(losses[3], losses[0])
        self.troupe("train", TINY / "reward.yaml", "run.name=reward",
                    "run.steps=2", "models.reward.path=data/base",
                    "data.train=data/pairs_train.jsonl",
                    "eval.data=data/pairs_test.jsonl")
        lines = self.metrics("reward")
        self.assertAlmostEqual(lines[0]["val-core/pairs_test/loss"],
                               math.log(2), places=5)  # a zero head
        self.assertEqual(lines[0]["val-core/pairs_test/accuracy"], 0)
        self.assertLess(lines[2]["val-core/pairs_test/loss"], math.log(2))

    def test_the_best_checkpoint_stays(self):
        name = REWARD.format("prompts", "mean", 1)
        lines = self.train("best", *self.evaluated, "eval.every=1",
                           "run.save_every=1", "run.keep=1", "run.steps=5",
                           f"run.keep_best={name}")
        folder = self.run_folder("best")
        best = max(range(1, 6), key=lambda step: lines[step][name])
        self.assertEqual((folder / "best").resolve().name,
                         f"step_{best:06}")
        kept = {path.name for path in (folder / "checkpoints").iterdir()}
        self.assertEqual(kept, {f"step_{best:06}", "step_000005"})
        self.assertTrue((folder / "best/actor/config.json").is_file())

    def test_a_missing_metric_ends_the_run_at_its_first_step(self):
        printed = REWARD.format("prompts", "mean", 1).removeprefix("val-core/")
        words = [*self.evaluated, "eval.at_start=true", "run.steps=20",
                 "run.resume=fresh"]  # else it continues from memory
        for wrong, meant in ((printed, "val-core/" + printed),
                             ("critic/scores/mean", "critic/score/mean")):
            done = self.troupe(*self.ppo(f"run.keep_best={wrong}", *words),
                               code=2)
            self.assertIn(f"run.keep_best: expected a metric of this run, got "
                          f"'{wrong}'; try '{meant}'", done.stderr)
            self.assertNotIn(20, self.metrics("ppo"))
        self.troupe(*self.ppo(f"run.keep_best={meant}", *words,
                              "run.steps=2"))

    def test_rows_that_cannot_be_evaluated_are_found_before_the_start(self):
        done = self.troupe(*self.ppo("eval.data=none.jsonl"), code=2)
        self.assertIn("eval.data", done.stderr)
        (self.folder / "bad.jsonl").write_text('{"prompt": 5}\n')
        done = self.troupe(*self.ppo("eval.data=bad.jsonl"), code=2)
        self.assertIn("bad.jsonl:1", done.stderr)
        self.assertFalse(self.run_folder("ppo").exists())


if __name__ == "__main__":
    unittest.main()
