"""How a run ends other than by its last step: workers that die, signals, time
limits. Whatever the way, no process is left (Case.tearDown checks)."""
import json
import os
import signal
import time
import unittest

from support import Case, read_rows, until

LONG = "run.steps=100000"


class Stop(Case):
    def running(self, *overrides):
        """A PPO run that has done its first step."""
        process = self.start(*self.ppo(LONG, *overrides))
        self.wait_for_step("ppo", 1)
        return process

    def check_resumable(self, done):
        """There is a checkpoint of the last step that the metrics know."""
        step = max(self.metrics("ppo"))
        self.assertEqual(self.latest("ppo").name, f"step_{step:06}")
        self.assertTrue((self.latest("ppo") / "manifest.json").is_file())
        again = self.troupe(*self.ppo(f"run.steps={step + 1}"))
        self.assertEqual(max(self.metrics("ppo")), step + 1)
        return done, again

    def test_a_killed_worker_ends_the_run_in_two_seconds(self):
        process = self.running()
        victim = self.workers()[1]
        begin = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        done = process.finish()
        self.assertLess(time.monotonic() - begin, 2)
        self.assertEqual(done.code, 1, done.err)
        last = done.err.strip().splitlines()[-1]
        self.assertRegex(last, r"^error: .*worker \d")
        self.assertIn(str(victim), last)
        self.assertNotIn("Traceback", done.err)
        failure = read_rows(self.run_folder("ppo") / "failures.jsonl")[-1]
        self.assertIn(str(victim), failure["who"])
        status = json.loads(
            self.troupe("status", "runs/ppo", "--json").stdout)
        self.assertEqual(status["state"], "failed")
        self.assertTrue(status["last_failure"])

    def test_ctrl_c_saves_and_exits_with_130(self):
        process = self.running()
        process.send(signal.SIGINT)
        done = process.finish()
        self.assertEqual(done.code, 130, done.err)
        self.check_resumable(done)

    def test_sigterm_saves_and_exits_with_75(self):
        process = self.running()
        process.send(signal.SIGTERM)
        done = process.finish()
        self.assertEqual(done.code, 75, done.err)
        self.check_resumable(done)

    def test_a_second_signal_exits_at_once(self):
        process = self.running()
        process.send(signal.SIGINT)
        process.send(signal.SIGINT)
        begin = time.monotonic()
        done = process.finish()
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(done.code, 130, done.err)

    def test_max_time_saves_and_exits_with_75(self):
        done = self.start(*self.ppo(LONG, "run.max_time=5s")).finish()
        self.assertEqual(done.code, 75, done.err)
        self.check_resumable(done)

    def test_troupe_stop_saves_and_ends_the_run(self):
        process = self.running()
        self.troupe("stop", "runs/ppo")
        done = process.finish()
        self.assertEqual(done.code, 75, done.err)
        self.check_resumable(done)

    def test_workers_of_a_killed_master_exit_within_ten_seconds(self):
        process = self.running()
        self.assertEqual(len(self.workers()), 2)
        process.send(signal.SIGKILL)
        until(lambda: not self.processes(), "workers gone", seconds=10)
        process.finish()
        status = json.loads(
            self.troupe("status", "runs/ppo", "--json").stdout)
        self.assertEqual(status["state"], "lost")

    def test_after_a_killed_master_the_run_goes_on(self):
        process = self.running("run.save_every=1")
        self.wait_for_step("ppo", 3)
        process.send(signal.SIGKILL)
        process.finish()
        until(lambda: not self.processes(), "workers gone", seconds=10)
        step = int(self.latest("ppo").name.removeprefix("step_"))
        self.troupe(*self.ppo(f"run.steps={step + 2}", "run.save_every=1"))
        self.assertEqual(sorted(self.metrics("ppo")),
                         list(range(1, step + 3)))

    def test_two_masters_do_not_share_a_run_folder(self):
        process = self.running()
        second = self.troupe(*self.ppo(LONG), code=2)
        self.assertRegex(second.stderr, r"^error: ")
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75)


if __name__ == "__main__":
    unittest.main()
