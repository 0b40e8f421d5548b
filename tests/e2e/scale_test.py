"""What grows with the data and with the processes: rows are read once for all
starts and workers of a run, and the limit of open files is taken and named."""
import pathlib
import re
import subprocess
import unittest

from support import (CONSTANT, DEADLINE_S, TROUPE, Case, read_rows, tree_bytes,
                     without_times, write_rows)

READ = re.compile(r"(\d+) rows of data.train (read|taken from data.index) in")


class RowIndex(Case):
    def train(self, name, *overrides):
        self.troupe(*self.ppo(f"run.name={name}", *CONSTANT, *overrides))

    def starts(self, name):
        """Returns how each start of a run got its rows."""
        log = (self.run_folder(name) / "log.txt").read_text()
        return [what for _, what in READ.findall(log)]

    def worker_logs(self, name):
        return "".join(file.read_text() for file in
                       (self.run_folder(name) / "logs").glob("worker_*.log"))

    def outcome(self, name):
        """Metrics without times, samples and weights."""
        lines = {step: without_times(line)
                 for step, line in self.metrics(name).items()}
        samples = (self.run_folder(name) / "samples.jsonl").read_text()
        return lines, samples, tree_bytes(self.latest(name), "*/*.safetensors")

    def test_later_starts_read_no_row_and_resume_bit_identically_I8(self):
        self.train("whole", "run.steps=4")
        self.train("parts", "run.steps=2")
        self.train("parts", "run.steps=4")
        self.assertEqual(self.starts("parts"),
                         ["read", "taken from data.index"])
        self.assertNotIn("again", self.worker_logs("parts"))
        self.assertEqual(self.outcome("whole"), self.outcome("parts"))

    def test_a_damaged_or_foreign_index_is_rebuilt_I8(self):
        self.train("whole", "run.steps=4")
        rows = read_rows(self.folder / "data/prompts.jsonl")
        write_rows(self.folder / "other.jsonl", rows[::-1])
        self.train("other", "run.steps=1", "data.train=other.jsonl")
        foreign = (self.run_folder("other") / "data.index").read_bytes()
        for name, change in (("damaged", lambda old: old[:-8] + bytes(8)),
                             ("cut", lambda old: old[:len(old) // 2]),
                             ("foreign", lambda old: foreign)):
            self.train(name, "run.steps=2")
            index = self.run_folder(name) / "data.index"
            good = index.read_bytes()
            index.write_bytes(change(good))
            self.train(name, "run.steps=4")
            self.assertEqual(self.starts(name), ["read", "read"])
            self.assertEqual(index.read_bytes(), good)
            self.assertEqual(self.outcome("whole"), self.outcome(name))

    def test_a_file_of_as_many_bytes_with_other_rows_is_read(self):
        data = self.folder / "rows.jsonl"
        data.write_text((self.folder / "data/prompts.jsonl").read_text())
        self.train("run", "run.steps=1", f"data.train={data}")
        lines = data.read_text().splitlines(keepends=True)
        data.write_text("".join(lines[::-1]))
        self.train("run", "run.steps=1", f"data.train={data}",
                   "run.resume=fresh")
        self.assertEqual(self.starts("run"), ["read"])
        self.assertEqual(self.starts("run.1"), ["read"])


class OpenFiles(Case):
    def limited(self, ulimit, *arguments):
        """Runs troupe after a `ulimit` of the shell's."""
        return subprocess.run(
            ["sh", "-c", f'ulimit {ulimit}; exec "$@"', "sh", str(TROUPE),
             *map(str, arguments)], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, timeout=DEADLINE_S)

    def test_a_low_soft_limit_is_raised(self):
        done = self.limited("-Sn 24", *self.ppo("run.steps=1"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_limit_too_low_for_the_workers_is_reported_before_the_start(self):
        done = self.limited("-n 70", *self.ppo(
            "data.batch_size=64", "algorithm.mini_batches=1",
            "cluster.devices_per_node=32", "cluster.workers_per_node=32",
            "plan=data_parallel"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(
            done.stderr, r"a run of 32 workers needs up to \d+ open files in "
            r"the master and \d+ in a worker, but the limit of a process is 70; "
            r"try `ulimit -n \d+`")
        self.assertNotIn("token", done.stderr)
        self.assertFalse(pathlib.Path(self.folder / "runs").exists())

    def test_a_worker_without_a_descriptor_does_not_blame_the_token_file(self):
        """At which limit the last one is missing is the libraries' matter."""
        (self.folder / "token").write_text("0123456789abcdef")
        said = [done.stderr for number in range(10, 16) if "Too many" in (
            done := self.limited(f"-n {number}", "worker", "--join",
                                 "127.0.0.1:9", "--token-file", "token")).stderr]
        self.assertTrue(said)
        for text in said:
            self.assertRegex(text, r"error: worker: too many open files: this "
                             r"process has all \d+ open that it may")
            self.assertNotIn(".token", text)

    def test_the_doctor_names_the_number_of_workers_within_the_limit(self):
        done = self.limited("-n 1024", "doctor")
        self.assertRegex(done.stdout, r"open files +limit 1024 of a process, "
                         r"enough for runs of 3\d\d workers")


if __name__ == "__main__":
    unittest.main()
