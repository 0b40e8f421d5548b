"""troupe.plan_*: the documents of the plan commands as dataclasses, from either
program."""
import dataclasses
import json
import os
import subprocess
import unittest
from unittest import mock

from package import SOURCE, troupe
from support import BUILD

SIZES = str(SOURCE / "examples/paper/7b.yaml")
HERE = {"hardware": "h100x8"}


class Planning(unittest.TestCase):
    def document(self, *words):
        done = subprocess.run([BUILD / "troupe-plan", *words, "--hardware",
                               "h100x8", "--json"], capture_output=True,
                              text=True, timeout=90)
        return json.loads(done.stdout)

    def assert_same(self, found, want, *without):
        """A dataclass has what the document has, in its nested ones too."""
        for field in dataclasses.fields(found):
            if field.name in ("document", *without):
                continue
            value, other = getattr(found, field.name), want.get(field.name)
            if isinstance(value, list) and value and dataclasses.is_dataclass(
                    value[0]):
                self.assertEqual(len(value), len(other), field.name)
                for one, two in zip(value, other):
                    self.assert_same(one, two)
            elif field.name in want:
                self.assertEqual(value, other, field.name)

    def test_a_check_has_the_peaks_or_the_reasons(self):
        found = troupe.plan_check(SIZES, preset="megatron", **HERE)
        self.assertTrue(found.ok)
        self.assert_same(found, self.document("check", SIZES, "--preset",
                                              "megatron"))
        self.assertEqual(found.devices[7].device, 7)
        cannot = troupe.plan_check(SIZES, preset="data_parallel", **HERE)
        self.assertFalse(cannot.ok)
        self.assertEqual(cannot.errors[0].path, "calls.actor_train")
        self.assertIn("expected at most", cannot.errors[0].message)

    def test_wrong_settings_are_raised(self):
        with self.assertRaises(troupe.ConfigError) as caught:
            troupe.plan_check(SIZES, {"run.stepss": 3}, **HERE)
        self.assertIn("try run.steps", str(caught.exception))
        with self.assertRaises(troupe.ConfigError) as caught:
            troupe.plan_simulate(SIZES, hardware="h100x9")
        self.assertIn("--hardware: expected one of laptop", str(caught.exception))
        with self.assertRaises(troupe.PlanError):
            troupe.plan_simulate(SIZES, preset="data_parallel", **HERE)

    def test_a_plan_is_a_preset_a_file_or_its_text(self):
        found = troupe.plan_search(SIZES, **HERE)
        self.assertTrue(found.proved)
        self.assertLessEqual(found.lower_bound_s, found.step_s)
        self.assert_same(found, self.document("search", SIZES), "seconds")
        simulated = troupe.plan_simulate(SIZES, plan=found.plan, **HERE)
        self.assertAlmostEqual(simulated.step_s, found.step_s)
        self.assertEqual(len(simulated.devices), 8)
        self.assertIn("actor_gen", [task.call for task in simulated.tasks])
        self.assertIn(simulated.critical_path[0],
                      [task.name for task in simulated.tasks])

    def test_options_and_overrides_reach_the_program(self):
        short = troupe.plan_simulate(SIZES, preset="megatron",
                                     response_tokens="64:128", **HERE)
        usual = troupe.plan_simulate(SIZES, preset="megatron", **HERE)
        self.assertLess(short.step_s, usual.step_s)
        two = troupe.plan_check(SIZES, {"cluster": {"nodes": 2}},
                                preset="megatron", **HERE)
        self.assertEqual(len(two.devices), 16)
        lagged = troupe.plan_search(SIZES, lag={"actor_gen": 1}, iterations=300,
                                    **HERE)
        self.assertIn("lag:\n  actor_gen: 1\n", lagged.plan)

    def test_a_comparison_knows_the_best(self):
        found = troupe.plan_compare(SIZES, presets=["megatron", "verl",
                                                    "data_parallel"], **HERE)
        rows = {row.plan: row for row in found.rows}
        self.assertEqual(sorted(rows), ["data_parallel", "megatron", "verl"])
        self.assertFalse(rows["data_parallel"].fits)
        self.assertTrue(rows["data_parallel"].reason)
        self.assertIn(found.best.plan, ("megatron", "verl"))
        self.assertEqual(found.best.step_s,
                         min(row.step_s for row in found.rows if row.fits))

    def test_the_planner_alone_is_enough(self):
        with mock.patch.dict(os.environ, {"TROUPE_PROGRAM": "/nothing"}):
            with self.assertRaises(troupe.ProgramMissing):
                troupe.train("run.yaml")
            found = troupe.plan_check(SIZES, preset="megatron", **HERE)
        self.assertTrue(found.ok)


if __name__ == "__main__":
    unittest.main()
