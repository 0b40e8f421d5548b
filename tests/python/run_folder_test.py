"""troupe.RunFolder and load_samples: what a run has left, and the YAML that it
wrote."""
import json
import unittest

from package import Case, troupe
from support import read_rows

from troupe.written_yaml import read_yaml


class RunFolder(Case):
    def test_a_run_is_read_as_it_was_written(self):
        self.troupe(*self.ppo("run.steps=2", "run.save_every=1",
                              "rollout.stop=['a, b', 'it''s']"))
        run = troupe.RunFolder(self.run_folder("ppo"))
        self.assertEqual((run.name, run.status.state, run.status.step),
                         ("ppo", "done", 2))
        self.assertEqual(run.metrics, list(self.metrics("ppo").values()))
        self.assertEqual(run.failures, [])
        self.check_settings(run)
        self.check_checkpoints(run)
        self.check_samples(run)

    def check_settings(self, run):
        config = run.config
        self.assertEqual(config["run"]["steps"], 2)
        self.assertEqual(config["rollout"]["stop"], ["a, b", "it's"])
        self.assertIs(config["algorithm"]["whiten"], True)
        self.assertEqual(config["models"]["actor"]["optimizer"]["betas"],
                         [0.9, 0.95])
        self.assertEqual(config["metrics"]["command"], "")
        self.assertEqual(run.plan["calls"]["critic_train"],
                         {"devices": "2-3", "strategy": "d2"})

    def check_checkpoints(self, run):
        self.assertEqual([one.step for one in run.checkpoints], [1, 2])
        self.assertEqual(sorted(run.latest.roles), ["actor", "critic"])
        self.assertIsNone(run.best)
        (run.checkpoints[1].path / "manifest.json").unlink()
        self.assertEqual(run.latest.step, 1, "the other one is not complete")

    def check_samples(self, run):
        rows = read_rows(run.path / "samples.jsonl")
        self.assertEqual([one.document for one in run.samples()], rows)
        second = troupe.load_samples(run.path, step=2)
        self.assertEqual([one.document for one in second],
                         [row for row in rows if row["step"] == 2])
        self.assertEqual(len(troupe.load_samples(run, range(2))), 16)
        one = second[0]
        self.assertEqual(len(one.response_ids), sum(one.loss_mask))
        self.assertEqual(one.response_ids,
                         one.sequence_ids[-len(one.response_ids):])
        self.assertIsInstance(one.advantages, list)

    def test_what_is_no_run_is_said_at_once(self):
        with self.assertRaises(FileNotFoundError) as caught:
            troupe.RunFolder(self.folder)
        self.assertIn("expected a run's folder", str(caught.exception))

    def test_half_a_line_is_not_read_yet(self):
        (self.folder / "config.yaml").write_text("run: {name: x}\n")
        (self.folder / "metrics.jsonl").write_text('{"step":1,"a":1}\n'
                                                   '{"step":1,"a":2}\n{"st')
        run = troupe.RunFolder(self.folder)
        self.assertEqual(run.metrics, [{"step": 1, "a": 2}])
        self.assertEqual(list(run.samples()), [])


class WrittenYaml(unittest.TestCase):
    def test_blocks_and_flows_are_read(self):
        self.assertEqual(read_yaml(
            'a:\n  b: {c: [1, -2.5, 1.0e-08, x y], d: "e: \\"f\\"", g: {}}\n'
            '  "h i": ~\n# a comment\nj: [true, "true", \'it\'\'s\']\n'
            'k: http://x:1/\nl: 0-3\nm: ""\n'),
            {"a": {"b": {"c": [1, -2.5, 1e-8, "x y"], "d": 'e: "f"', "g": {}},
                   "h i": None},
             "j": [True, "true", "it's"], "k": "http://x:1/", "l": "0-3",
             "m": ""})

    def test_anything_else_is_refused_with_its_line(self):
        for text in ("a: 1\nb: |\n  c\n", "a: 1\n- b\n", "a: 1\nb: [1, 2\n",
                     "a: 1\nb: {c 1}\n", "a: 1\nb: [1] 2\n", "a: 1\nb: &c 1\n"):
            with self.subTest(text):
                with self.assertRaisesRegex(ValueError, "^line 2: expected"):
                    read_yaml(text)

    def test_json_is_read_like_json(self):
        value = {"a": [1, 2.5, "x", None, True, {"b": []}], "c": "d\ne"}
        self.assertEqual(read_yaml("v: " + json.dumps(value)), {"v": value})


if __name__ == "__main__":
    unittest.main()
