"""The demo's generator: same seed, same bytes; a model folder that fits."""
import json
import subprocess
import unittest

from support import BUILD, Case, read_rows, tree_bytes


class DemoData(Case):
    def make(self, name, *arguments):
        subprocess.run([BUILD / "tiny_data", "--out", self.folder / name,
                        *arguments], check=True, stdout=subprocess.DEVNULL)
        return tree_bytes(self.folder / name)

    def test_the_same_seed_gives_the_same_bytes(self):
        first = self.make("a", "--seed", "7")
        self.assertEqual(first, self.make("b", "--seed", "7"))
        self.assertNotEqual(first, self.make("c", "--seed", "8"))

    def test_pairs_differ_and_share_no_answer_with_the_other_side(self):
        for file in ("pairs_train.jsonl", "pairs_test.jsonl"):
            for row in read_rows(self.folder / "data" / file):
                self.assertNotEqual(row["chosen"], row["rejected"])
                self.assertTrue(row["prompt"].endswith("\nAnswer:"))

    def test_the_tokenizer_gives_back_every_text(self):
        rows = read_rows(self.folder / "data/sft.jsonl")[:200]
        texts = [row["prompt"] + row["completion"] for row in rows]
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        ids = self.troupe("tokenize", "--model", "data/base", text_in=lines)
        back = self.troupe("tokenize", "--model", "data/base", "--decode",
                           text_in=ids.stdout)
        self.assertEqual(list(map(json.loads, back.stdout.splitlines())), texts)
        lengths = [len(json.loads(line)) for line in ids.stdout.splitlines()]
        self.assertLess(max(lengths), 48)

    def test_a_wrong_command_line_prints_the_usage(self):
        done = subprocess.run([BUILD / "tiny_data", "--seed", "x"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: tiny_data", done.stderr)


if __name__ == "__main__":
    unittest.main()
