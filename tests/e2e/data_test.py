"""Data files as users have them: compressed, several, and mixtures with weights."""
import gzip
import pathlib
import unittest

from support import CONSTANT, Case, read_rows, write_rows

WRONG_INPUT = 2


class Data(Case):
    def train(self, name, *overrides):
        done = self.troupe(*self.sft(f"run.name={name}", *overrides))
        return done.stdout + done.stderr

    def packed(self, file, name):
        """A file of the test's folder with the same rows, as gzip packs them."""
        packed = self.folder / name
        packed.write_bytes(gzip.compress((self.folder / file).read_bytes()))
        return name

    def two_files(self):
        """a.jsonl and b.jsonl.gz with the halves of sft.jsonl."""
        rows = read_rows(self.folder / "data/sft.jsonl")[:96]
        write_rows(self.folder / "a.jsonl", rows[:32])
        write_rows(self.folder / "b.jsonl", rows[32:])
        return "a.jsonl", self.packed("b.jsonl", "b.jsonl.gz")

    def test_a_gzip_file_trains_as_its_plain_file(self):
        packed = self.packed("data/sft.jsonl", "sft.jsonl.gz")
        self.train("plain")
        self.train("packed", f"data.train={packed}",
                   f"eval.data={packed}", "eval.max_rows=4")
        lines = self.metrics("plain"), self.metrics("packed")
        for step in (1, 2, 3):
            self.assertEqual(lines[0][step]["train/loss"],
                             lines[1][step]["train/loss"])
        self.assertIn("val-core/sft/loss", lines[1][3])
        kept = list(self.cache.glob("troupe/rows/*/sft.jsonl"))
        self.assertEqual([file.read_bytes() for file in kept],
                         [(self.folder / "data/sft.jsonl").read_bytes()])

    def test_workers_that_share_no_files_fetch_the_plain_rows(self):
        packed = self.packed("data/sft.jsonl", "sft.jsonl.gz")
        self.train("run", f"data.train={packed}", "cluster.shared_files=false")
        self.assertEqual(len(self.metrics("run")), 3)

    def test_a_mixture_gives_each_file_its_share(self):
        first, second = self.two_files()
        mixture = f"[{{path: {first}, weight: 3}}, {{path: {second}, weight: 1}}]"
        said = self.train("mixed", f"data.train={mixture}")
        self.assertRegex(said, r"from a +75\.0 % +32 rows, 2\.25 passes an epoch")
        for line in self.metrics("mixed").values():
            self.assertEqual((line["data/rows/a"], line["data/rows/b"]), (6, 2))

    def test_a_mixture_resumes_with_the_same_rows_I8(self):
        first, second = self.two_files()
        mixture = [f"data.train=[{{path: {first}, weight: 2}}, "
                   f"{{path: {second}, weight: 1}}]", *CONSTANT[:1]]
        self.train("whole", *mixture, "run.steps=6")
        self.train("parts", *mixture, "run.steps=3")
        self.train("parts", *mixture, "run.steps=6")
        for step, line in self.metrics("whole").items():
            other = self.metrics("parts")[step]
            for key in ("train/loss", "data/rows/a", "data/rows/b"):
                self.assertEqual(line[key], other[key], (step, key))

    def test_files_without_weights_are_one_epoch_after_the_other(self):
        first, second = self.two_files()
        self.train("list", f"data.train=[{first}, {second}]", "run.steps=null",
                   "run.epochs=1")
        lines = self.metrics("list")
        self.assertEqual(len(lines), 96 // 8)
        self.assertEqual(sum(line["data/rows/a"] for line in lines.values()), 32)
        self.assertEqual(sum(line["data/rows/b"] for line in lines.values()), 64)

    def test_another_weight_is_another_run(self):
        first, second = self.two_files()
        mixture = "data.train=[{path: %s, weight: %s}, {path: %s, weight: 1}]"
        self.train("run", mixture % (first, 2, second))
        done = self.troupe(*self.sft("run.name=run", "run.steps=4",
                                     mixture % (first, 3, second)),
                           code=WRONG_INPUT)
        self.assertIn("data.train", done.stderr)

    def refused(self, *overrides):
        return self.troupe(*self.sft(*overrides), code=WRONG_INPUT).stderr

    def test_mistakes_are_named_with_file_and_line(self):
        first, _ = self.two_files()
        self.assertIn("data.train[1]: expected another file",
                      self.refused(f"data.train=[{first}, {first}]"))
        self.assertIn("'nowhere.jsonl', which is no file",
                      self.refused(f"data.train=[{first}, nowhere.jsonl]"))
        bad = self.folder / "bad.jsonl"
        bad.write_text('{"prompt": "a", "completion": "b"}\n{"prompt": 1}\n')
        packed = self.packed("bad.jsonl", "bad.jsonl.gz")
        self.assertIn("bad.jsonl.gz:2: prompt: expected text",
                      self.refused(f"data.train=[{first}, {packed}]"))
        whole = (self.folder / packed).read_bytes()
        pathlib.Path(self.folder / "cut.jsonl.gz").write_bytes(whole[:-9])
        self.assertIn("cut.jsonl.gz: expected a whole gzip file, got one that "
                      "is cut off", self.refused("data.train=cut.jsonl.gz"))


if __name__ == "__main__":
    unittest.main()
