"""Snapshots in the hosts' memory: a run that loses workers or its master goes on
after the last step, not the last checkpoint, to the same bits (I5, I8)."""
import json
import os
import re
import signal
import unittest

from support import CONSTANT, TINY, Case, until

STEPS = 24  # so many that none has ended before a test has killed a process
# one checkpoint, at the end
RUN = [f"run.steps={STEPS}", "run.save_every=0", *CONSTANT]


class Snapshots(Case):
    def start_ppo(self, *overrides):
        return self.start(*self.ppo(*RUN, *overrides))

    def check_as_undisturbed(self, *overrides, name="ppo"):
        self.troupe(*self.ppo(*RUN, *overrides, "run.name=undisturbed",
                              "run.snapshot_every=0"))
        for got, wanted in zip(self.outcome(name), self.outcome("undisturbed")):
            self.assertEqual(got, wanted)

    def record(self, name="ppo"):
        file = self.run_folder(name) / "snapshot" / "record.json"
        return json.loads(file.read_text()) if file.exists() else None

    def wait_for_snapshot(self, steps):
        until(lambda: (self.record() or {"state": {"next_step": 0}})["state"]
              ["next_step"] >= steps, f"a snapshot of {steps} steps")

    def step_continued_after(self, done):
        return int(re.search(r"continuing after step (\d+) ", done.out)[1])

    def check_nothing_is_left(self):
        until(lambda: not self.keepers(), "the end of the keeper")
        self.assertIsNone(self.record())

    def test_a_killed_worker_costs_one_step_at_most_I8(self):
        process = self.start_ppo()
        self.wait_for_snapshot(3)
        os.kill(self.workers()[1], signal.SIGKILL)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        failure, = self.failures()
        self.assertLessEqual(failure["lost_steps"], 1)
        # there is no checkpoint
        self.assertGreaterEqual(self.step_continued_after(done), 3)
        self.check_nothing_is_left()
        self.check_as_undisturbed()

    def test_a_killed_master_is_started_again_after_its_last_step_I8(self):
        process = self.start_ppo()
        self.wait_for_snapshot(3)
        process.send(signal.SIGKILL)
        process.finish()
        steps = self.record()["state"]["next_step"]
        self.assertTrue(self.keepers(), "it outlives the run")
        until(lambda: not self.workers(), "the end of the workers")
        done = self.troupe(*self.ppo(*RUN))
        self.assertIn(f"continuing after step {steps} of {STEPS}, from memory",
                      done.stdout)
        self.check_nothing_is_left()
        self.check_as_undisturbed()

    def test_a_lost_keeper_is_a_run_from_the_checkpoint_before_I8(self):
        process = self.start_ppo("run.save_every=2")
        self.wait_for_checkpoint("ppo")
        self.wait_for_snapshot(3)
        process.send(signal.SIGSTOP)
        for pid in self.keepers() + self.workers()[1:]:
            os.kill(pid, signal.SIGKILL)
        process.send(signal.SIGCONT)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.step_continued_after(done) % 2, 0)
        self.check_nothing_is_left()
        self.check_as_undisturbed("run.save_every=2")

    def test_calls_in_flight_are_kept_too_I8(self):
        lag = [f"plan={TINY}/plans/lag.yaml"]
        process = self.start_ppo(*lag)
        self.wait_for_snapshot(3)
        os.kill(self.workers()[0], signal.SIGKILL)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertGreaterEqual(self.step_continued_after(done), 3)
        self.check_as_undisturbed(*lag)

    def test_a_run_that_ends_in_order_leaves_nothing(self):
        process = self.start_ppo("run.steps=100000")
        self.wait_for_snapshot(2)
        self.assertEqual(len(self.keepers()), 1)
        process.send(signal.SIGTERM)
        done = process.finish()
        self.assertEqual(done.code, 75, done.err)
        self.check_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
