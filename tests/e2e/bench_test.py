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

    def document(self, *words):
        """Of a benchmark of one device, on the CPU."""
        done = self.bench(*words, "--card", "tiny", "--device", "cpu", "--runs", "2")
        document = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((document["bench"], document["device"], document["n"]),
                         (words[0], "cpu", 2))
        return document

    def test_a_decoded_token_has_its_time_and_the_bytes_it_reads(self):
        document = self.document("decode", "--batch", "3", "--tokens", "16",
                                 "--new-tokens", "240", "--layers", "2")
        self.assertEqual([document[name] for name in (
            "batch", "prompt_tokens", "new_tokens", "layers")], [3, 16, 240, 2])
        # all of the model's matrices and norms but the embedding's 512 x 128
        self.assertEqual(document["read_bytes"],
                         4 * (document["parameters"] - 512 * 128))
        # keys and values of two heads of 32 numbers
        self.assertEqual(document["cached_numbers_a_token"], 2 * 2 * 2 * 32)
        self.assertGreater(document["ms_token"], 0)
        self.assertAlmostEqual(document["tok_s"], 3e3 / document["ms_token"])

    def test_training_has_its_sizes_and_may_recompute(self):
        document = self.document("train", "--batch", "2", "--tokens", "48",
                                 "--recompute", "on")
        self.assertEqual((document["tokens"], document["recompute"],
                          document["optimizer_steps"]), (96, True, 4))
        self.assertAlmostEqual(document["flops"] * 1e-9,
                               document["gflops"] * document["step_s"]["median"])

    def test_two_tensor_peers_train_on_one_device(self):
        document = self.document("train", "--batch", "2", "--plan", "tensor",
                                 "--threads", "2")
        self.assertEqual(document["optimizer_steps"], 4)

    def test_memory_moves_and_sums_are_checked_and_timed(self):
        document = self.document("memory", "--mib", "4")
        for name in ("fill_gb_s", "host_writes_gb_s", "host_reads_gb_s"):
            self.assertGreater(document[name]["median"], 0)
        self.assertGreater(document["gb_s"], 0)
        document = self.document("device_move")
        # fp32 of all parameters, once, each padded to 64 bytes
        self.assertGreaterEqual(document["bytes"], 4 * 918656)
        self.assertGreater(document["of_copy"], 0)
        document = self.document("sums", "--mib", "1", "--threads", "2")
        self.assertEqual((document["ranks"], document["mib"]), (2, 1))
        self.assertEqual(document["nccl"], 0)
        for name in ("bus_gb_s", "all_gather_gb_s", "reduce_scatter_gb_s", "exchange_gb_s"):
            self.assertGreater(document[name], 0)
        self.assertNotIn("in_stream_gb_s", document)
        document = self.document("sums", "--mib", "1", "--threads", "2", "--dtype", "bf16")
        self.assertGreater(document["bus_gb_s"], 0)

    def test_only_gpus_with_a_hardware_file_have_predictions(self):
        for words in (("decode", "--new-tokens", "64"), ("train",), ("memory", "--mib", "1")):
            self.assertNotIn("predicted", self.document(*words))

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
                (["decode", "--device", "tpu"], "got '--device tpu'"),
                (["decode", "--batch", "0"],
                 "--batch: expected a whole number > 0, got '0'"),
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
