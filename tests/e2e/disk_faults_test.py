"""A disk that is full, read-only or stale at each place where a run writes: the
run goes on or ends in order, says why, and continues afterwards to the bits of
an undisturbed one."""
import errno
import os
import pathlib
import shutil
import subprocess
import time
import unittest

from support import BUILD, Case

HERE = pathlib.Path(__file__).parent
KINDS = (errno.ENOSPC, errno.EROFS, errno.ESTALE)

# What fails, where, and after how many such calls of a process; whether the run
# may go on without it.
POINTS = (
    ("mkdir", "runs/ppo", 0, False),
    ("open", "runs/ppo/config.yaml", 0, False),
    ("rename", "runs/ppo/config.yaml", 0, False),
    ("open", "runs/ppo/data.index", 0, True),
    ("open", "runs/ppo/.token", 0, False),
    ("open", "runs/ppo/log.txt", 0, False),
    ("open", "runs/ppo/logs/worker_01.log", 0, False),
    ("open", "runs/ppo/status.json", 0, True),
    ("rename", "runs/ppo/status.json", 3, True),
    ("open", "runs/ppo/trace/", 0, True),
    ("write", "runs/ppo/trace/", 1, True),
    ("open", "runs/ppo/metrics.jsonl", 0, False),
    ("write", "runs/ppo/metrics.jsonl", 1, False),
    ("open", "runs/ppo/samples.jsonl", 0, False),
    ("write", "runs/ppo/samples.jsonl", 1, False),
    ("mkdir", "checkpoints/.tmp-", 0, False),
    ("open", "checkpoints/.tmp-", 0, False),
    ("write", "checkpoints/.tmp-", 2, False),
    ("sync", "checkpoints/.tmp-", 0, False),
    ("rename", "checkpoints/.tmp-", 0, False),
    ("link", "runs/ppo/.latest.tmp", 0, False),
)


class DiskFaults(Case):
    @classmethod
    def setUpClass(cls):
        compiler = shutil.which("cc")
        if compiler is None:
            raise unittest.SkipTest("no cc on this machine")
        if "fsanitize" in (BUILD / "CMakeCache.txt").read_text():
            raise unittest.SkipTest("a sanitizer must be loaded first")
        super().setUpClass()
        cls.layer = cls.shared_folder / "failing_files.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", cls.layer,
                        HERE / "failing_files.c", "-ldl"], check=True)

    def run_ppo(self, *overrides):
        return self.start(*self.ppo("run.steps=3", "run.save_every=1",
                                    *overrides)).finish(60)

    def run_failing(self, call, path, after, number):
        whole = self.environment
        self.environment = {
            **whole, "LD_PRELOAD": str(self.layer), "FAILING_CALL": call,
            "FAILING_PATH": path, "FAILING_AFTER": str(after),
            "FAILING_ERRNO": str(number)}
        try:
            return self.run_ppo()
        finally:
            self.environment = whole

    def check(self, call, path, after, may_go_on, number):
        begin = time.monotonic()
        done = self.run_failing(call, path, after, number)
        self.assertIn(done.code, (0, 1, 2) if may_go_on else (1, 2),
                      f"{done.out}\n{done.err}")
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(self.processes(), {})
        if done.code != 0:
            errors = [line for line in done.err.splitlines()
                      if line.startswith("error: ")]
            self.assertEqual(len(errors), 1, done.err)
            self.assertRegex(errors[0], f"{os.strerror(number)}|cannot",
                             "the first cause")
        # the disk is well again: the same command continues
        self.assertEqual(self.run_ppo().code, 0)

    def test_each_place_that_is_written_may_fail_I8(self):
        self.assertEqual(self.run_ppo("run.name=undisturbed").code, 0)
        wanted = self.outcome("undisturbed")
        for i, (call, path, after, may_go_on) in enumerate(POINTS):
            number = KINDS[i % len(KINDS)]
            with self.subTest(call=call, path=path, error=os.strerror(number)):
                self.check(call, path, after, may_go_on, number)
                self.assertEqual(self.outcome("ppo"), wanted)
            shutil.rmtree(self.run_folder("ppo"), ignore_errors=True)


if __name__ == "__main__":
    unittest.main()
