"""troupe-bench: its last line, and mistakes in one line."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from support import BUILD, DEADLINE_S


class Bench(unittest.TestCase):
    def bench(self, *words, code=0):
        done = subprocess.run([BUILD / "troupe-bench", *words],
                              capture_output=True, text=True,
                              timeout=DEADLINE_S)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_the_last_line_is_a_document_also_written_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.json"
            done = self.bench("simulate", "--runs", "2", "--json", str(out))
            document = json.loads(done.stdout.splitlines()[-1])
            self.assertEqual(json.loads(out.read_text()), document)
        self.assertEqual((document["bench"], document["n"],
                          document["threads"]), ("simulate", 2, 1))
        self.assertLessEqual(document["min"], document["steps_s"])
        self.assertLessEqual(document["steps_s"], document["max"])
        for name in ("version", "cpu", "card", "dtype"):
            self.assertTrue(document[name], name)

    def test_the_control_plane_is_counted_with_fake_workers(self):
        done = self.bench("scale", "--devices", "16", "--runs", "1")
        document = json.loads(done.stdout.splitlines()[-1])
        for size in document["sizes"]:
            self.assertEqual((size["devices"], size["workers"]), (16, 2))
            self.assertGreater(size["messages"], 16)
            self.assertGreater(size["master_cpu_ms"]["median"], 0)

    def test_mistakes_are_one_line(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cards = pathlib.Path(folder.name) / "cards.json"
        cards.write_text('{"cards": {}}')
        for words, says in (
                (["simulat"], "expected a benchmark (collectives, "),
                (["simulate", "--runs", "0"],
                 "--runs: expected a whole number > 0, got '0'"),
                (["simulate", "--threads", "x"], "--threads: expected "),
                (["simulate", "--json"], "--json: expected a value"),
                (["simulate", "--json", "/proc/no/x"],
                 "--json: expected a file that can be written"),
                (["simulate", "--fast", "1"], "got '--fast 1'"),
                (["train", "--cards", str(cards)], "--card: expected a card of "),
                (["train", "--cards", "nowhere"],
                 "--cards: expected a file of cards")):
            with self.subTest(words=words):
                done = self.bench(*words, code=2)
                self.assertEqual(done.stdout, "")
                self.assertRegex(done.stderr, r"^error: command line: [^\n]*\n$")
                self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
