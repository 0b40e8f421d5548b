"""A run that loses workers goes on from its newest checkpoint by itself, to the
bits of a run that lost none (I5, I8)."""
import contextlib
import json
import os
import signal
import time
import unittest

from support import CONSTANT, Case, until

STEPS = 24  # so many that none has ended before a test has killed a worker
RUN = [f"run.steps={STEPS}", "run.save_every=2", *CONSTANT]


class Recovery(Case):
    def start_ppo(self, *overrides):
        return self.start(*self.ppo(*RUN, *overrides))

    def check_as_undisturbed(self, name="ppo", *overrides):
        self.troupe(*self.ppo(*RUN, *overrides, "run.name=undisturbed"))
        for got, wanted in zip(self.outcome(name), self.outcome("undisturbed")):
            self.assertEqual(got, wanted)

    def whole_checkpoints(self):
        folder = self.run_folder("ppo") / "checkpoints"
        return sorted(file.parent for file in
                      folder.glob("step_??????/manifest.json"))

    def kill(self, index, number=signal.SIGKILL):
        victim = until(lambda: self.workers()[index:], "workers")[0]
        os.kill(victim, number)
        return victim

    def wait_for_attempt(self, number):
        until(lambda: self.status().get("attempt") == number
              and self.status()["state"] == "running", f"attempt {number}")

    def test_a_killed_worker_costs_the_steps_since_the_checkpoint_and_no_bit_I8(
            self):
        process = self.start_ppo()
        self.wait_for_step("ppo", 3)
        self.wait_for_checkpoint("ppo")
        victim = self.kill(1)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.check_as_undisturbed()
        failure, = self.failures()
        self.assertIn(str(victim), failure["who"])
        self.assertIn(failure["action"], ("rolled_back", "restarted"))
        # a checkpoint is written while the next steps run
        self.assertLessEqual(failure["lost_steps"], 4)
        self.assertGreater(failure["seconds"], 0)
        self.assertRegex(done.out, rf"recovering: worker 1 \(pid {victim}\)")
        last = self.metrics("ppo")[STEPS]
        self.assertEqual(last["training/restarts"], 1)
        self.assertEqual(last["training/lost_steps"], failure["lost_steps"])
        status = self.status()
        self.assertEqual((status["state"], status["attempt"]), ("done", 2))

    def test_workers_killed_while_they_start_or_load_are_started_again_I8(self):
        process = self.start_ppo()
        self.kill(0)  # before it has joined
        self.wait_for_attempt(2)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.check_as_undisturbed()

    def test_a_loss_during_the_recovery_is_one_more_I8(self):
        process = self.start_ppo()
        self.wait_for_step("ppo", 1)
        self.kill(0)
        until(lambda: self.status().get("attempt") == 2, "the second attempt")
        self.kill(1)
        self.wait_for_attempt(3)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.check_as_undisturbed()
        self.assertEqual(len(self.failures()), 2)

    def test_both_workers_at_once_are_one_recovery_I8(self):
        process = self.start_ppo()
        self.wait_for_step("ppo", 2)
        for pid in self.workers():
            with contextlib.suppress(ProcessLookupError):  # killed already
                os.kill(pid, signal.SIGKILL)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.check_as_undisturbed()
        self.assertEqual(len(self.failures()), 1)

    def test_a_recovery_skips_a_damaged_checkpoint_I8(self):
        longer = ("run.steps=60", "run.save_every=10", "run.keep=6",
                  "run.snapshot_every=0")
        process = self.start_ppo(*longer)
        until(lambda: len(self.whole_checkpoints()) >= 2, "two checkpoints")
        process.send(signal.SIGSTOP)  # many steps before the last checkpoint
        newest = self.whole_checkpoints()[-1]
        file = newest / "actor/model.safetensors"
        file.write_bytes(file.read_bytes()[:-1])
        self.kill(1)
        process.send(signal.SIGCONT)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertIn(f"{newest.name}/actor/model.safetensors", done.err)
        self.assertTrue(newest.with_name(f"{newest.name}.damaged").is_dir())
        self.check_as_undisturbed("ppo", *longer)

    def test_a_worker_that_is_stopped_before_it_joins_is_replaced_I8(self):
        process = self.start_ppo("cluster.silence_s=3")
        begin = time.monotonic()
        victim = self.kill(1, signal.SIGSTOP)
        self.wait_for_attempt(2)
        self.assertLess(time.monotonic() - begin, 40, "the limit of the start")
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertNotIn(victim, self.processes())
        self.check_as_undisturbed()

    def test_a_silent_worker_is_replaced_I8(self):
        process = self.start_ppo("cluster.silence_s=3")
        self.wait_for_step("ppo", 1)
        victim = self.kill(1, signal.SIGSTOP)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertNotIn(victim, self.processes())
        self.check_as_undisturbed()

    def pids_of_workers(self):
        return {worker["pid"] for worker in self.status()["workers"]}

    def test_the_next_attempt_begins_with_spare_workers_I8(self):
        process = self.start_ppo("cluster.spares=2")
        self.wait_for_step("ppo", 1)
        working = self.pids_of_workers()
        spares = until(lambda: len(self.workers()) == 4
                       and set(self.workers()) - working, "two spares")
        os.kill(min(working), signal.SIGKILL)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(len(self.failures()), 1)
        self.assertEqual(self.pids_of_workers(), spares)
        self.check_as_undisturbed()

    def test_a_spare_that_is_lost_costs_nothing_I8(self):
        process = self.start_ppo("cluster.spares=2")
        self.wait_for_step("ppo", 1)
        working = self.pids_of_workers()
        spares = until(lambda: len(self.workers()) == 4
                       and set(self.workers()) - working, "two spares")
        os.kill(min(spares), signal.SIGKILL)
        self.wait_for_step("ppo", max(self.metrics("ppo")) + 1)
        os.kill(min(working), signal.SIGKILL)
        done = process.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(len(self.failures()), 1)
        self.assertEqual(len(self.pids_of_workers() & spares), 1)
        self.check_as_undisturbed()

    def test_it_gives_up_after_so_many_restarts_without_a_checkpoint(self):
        process = self.start_ppo("run.save_every=0", "run.snapshot_every=0",
                                 "run.steps=100000", "cluster.max_restarts=2")
        for attempt in (1, 2, 3):
            self.wait_for_attempt(attempt)
            self.wait_for_step("ppo", attempt)
            self.kill(attempt % 2)  # never the same worker twice in a row
        done = process.finish()
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("gave up after 2 restarts", done.err)
        self.assertEqual([line["action"] for line in self.failures()],
                         ["rolled_back", "rolled_back", "gave_up"])

    def test_a_program_that_ends_its_worker_in_the_same_step_is_not_tried_on(
            self):
        killer = self.folder / "killer.py"
        killer.write_text("""
import json, os, signal, sys
for line in sys.stdin:
    pid = os.getppid()
    while pid > 1:
        with open(f"/proc/{pid}/cmdline", "rb") as words:
            if b"worker" in words.read().split(b"\\0"):
                os.kill(pid, signal.SIGKILL)
        with open(f"/proc/{pid}/stat") as stat:
            pid = int(stat.read().rpartition(")")[2].split()[1])
    print(json.dumps({"id": json.loads(line)["id"], "score": 1}), flush=True)
""")
        process = self.start_ppo("models.reward=null", "reward.kind=process",
                                 "plan=single", "cluster.devices_per_node=1",
                                 "cluster.workers_per_node=1",
                                 f"reward.command=python3 {killer}",
                                 "cluster.max_restarts=9")
        done = process.finish()
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.err, r"step 1 ended worker 0 twice")
        self.assertEqual([line["action"] for line in self.failures()],
                         ["restarted", "gave_up"])

    def test_a_mistake_that_a_worker_finds_is_not_tried_again(self):
        process = self.start_ppo("models.reward=null", "reward.kind=process",
                                 "plan=single", "cluster.devices_per_node=1",
                                 "cluster.workers_per_node=1",
                                 "reward.command=false")
        done = process.finish()
        self.assertEqual(done.code, 2, done.err)
        self.assertEqual([line["action"] for line in self.failures()],
                         ["stopped the run"])

    def test_a_signal_during_a_recovery_ends_the_run_in_order(self):
        process = self.start_ppo("run.steps=100000")
        self.wait_for_step("ppo", 2)
        self.wait_for_checkpoint("ppo")
        self.kill(1)
        until(lambda: self.status().get("state") == "recovering", "a recovery")
        process.send(signal.SIGTERM)
        done = process.finish()
        self.assertEqual(done.code, 75, done.err)
        self.assertTrue((self.latest("ppo") / "manifest.json").is_file())


if __name__ == "__main__":
    unittest.main()
