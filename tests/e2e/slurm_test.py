"""`troupe slurm` -> sbatch -> PPO whose workers are steps of srun, on a real Slurm
of two nodes: what Slurm does to jobs loses nothing that was computed (I8)."""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from slurm import Slurm, missing
from support import Case, read_rows, tree_bytes, until, without_times

MISSING = missing()
if MISSING:
    print(f"skipped: {MISSING}")
SHAPE = ["cluster.devices_per_node=1", "cluster.workers_per_node=1"]
WAITING = ("PENDING", "CONFIGURING")
ENDING = ("RUNNING", "COMPLETING")
REQUEUED_WITHIN_S = 200  # Slurm waits two minutes before it starts a job again


@unittest.skipIf(MISSING, MISSING)
class SlurmJob(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = Slurm()

    @classmethod
    def tearDownClass(cls):
        cls.slurm.end()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.environment["SLURM_CONF"] = self.slurm.environment["SLURM_CONF"]

    def job_words(self, steps, *overrides):
        return self.ppo("run.name=job", f"run.steps={steps}", *SHAPE,
                        "cluster.nodes=2", "cluster.bind=127.0.0.1",
                        "plan=data_parallel", *overrides)

    def submit(self, steps, *overrides, edit=lambda script: script):
        """Returns the number of a job of two nodes that runs."""
        script = self.troupe("slurm", *self.job_words(steps, *overrides)[1:])
        (self.folder / "job.sh").write_text(edit(script.stdout))
        done = subprocess.run(["sbatch", "job.sh"], cwd=self.folder, text=True,
                              env=self.environment, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        number = done.stdout.split()[-1]
        self.wait_while(number, *WAITING)
        return number

    def wait_while(self, job, *states, seconds=60):
        """Waits until a job has another state, and returns it."""
        return self.slurm.wait_while(job, states, seconds)

    def log(self):
        file, = self.folder.glob("job_*.log")
        return file.read_text()

    def finish(self, job, state="COMPLETED"):
        """Waits for the end of a job and of all its processes."""
        self.assertEqual(self.wait_while(job, *ENDING), state,
                         self.slurm.log_of(job) + self.log())
        until(lambda: not self.processes(), "the end of all processes", 10)

    def wait_for_steps(self, steps):
        self.wait_for_step("job", steps)
        self.wait_for_checkpoint("job")

    def check_as_undisturbed(self, steps, *overrides):
        """The job computed what a run on this host does."""
        self.troupe(*self.job_words(
            steps, *overrides, "run.name=here", "cluster.nodes=1",
            "cluster.devices_per_node=2", "cluster.workers_per_node=2"),
            seconds=240)
        for name in ("job", "here"):
            self.assertEqual(max(self.metrics(name)), steps)
        job, here = ((tree_bytes(self.latest(name), "*/model.safetensors"),
                      [without_times(line)
                       for line in self.metrics(name).values()],
                      read_rows(self.run_folder(name) / "samples.jsonl"))
                     for name in ("job", "here"))
        for what, got, wanted in zip(("weights", "metrics", "samples"), job,
                                     here):
            self.assertTrue(got == wanted, f"other {what}")

    def stepd(self, job, step):
        """The process of Slurm that starts and watches a step."""
        found = [pid for pid, words in self.slurm.processes().items()
                 if words.startswith(f"slurmstepd: [{job}.{step}]")]
        return found[0] if found else None

    def workers_of(self, number):
        return [pid for pid, words in self.processes().items()
                if f" --number {number} " in words and "srun" not in words]

    # -- claims ----------------------------------------------------------------

    def test_term_before_the_limit_saves_requeues_and_goes_on_to_the_same_bits_I8(
            self):
        job = self.submit(40, "run.save_every=20")
        self.wait_for_step("job", 3)
        # what --signal=B:TERM sends when the job's time is nearly over
        self.slurm.run("scancel", "--batch", "--signal=TERM", job)
        self.assertEqual(self.wait_while(job, *ENDING), "PENDING", self.log())
        self.assertEqual(self.slurm.job(job)["Restarts"], "1")
        saved = max(self.metrics("job"))
        self.assertLess(saved, 40)
        # instead of minutes; a node refuses a start in the second in which it
        # ended the job ("Job credential revoked")
        self.slurm.run("scontrol", "update", f"jobid={job}", "starttime=now+2")
        self.wait_while(job, *WAITING)
        self.finish(job)
        log = (self.run_folder("job") / "log.txt").read_text()
        self.assertIn(f"running at step {saved}", log)
        self.check_as_undisturbed(40, "run.save_every=20")

    def test_a_worker_killed_on_a_node_is_started_again_in_the_job_I8(self):
        job = self.submit(40, "run.save_every=2")
        self.wait_for_steps(3)
        victim, = self.workers_of(1)
        os.kill(victim, signal.SIGKILL)
        self.finish(job)
        failure, = read_rows(self.run_folder("job") / "failures.jsonl")
        self.assertIn("worker 1", failure["who"])
        self.assertIn(failure["action"], ("rolled_back", "restarted"))
        self.check_as_undisturbed(40, "run.save_every=2")

    def test_a_killed_slurmstepd_of_a_worker_costs_no_bit_I8(self):
        job = self.submit(40, "run.save_every=2")
        self.wait_for_steps(3)
        until(lambda: self.stepd(job, 1), "the step of a worker")
        os.kill(self.stepd(job, 1), signal.SIGKILL)
        self.finish(job)
        self.check_as_undisturbed(40, "run.save_every=2")

    def test_a_cancelled_job_saves_and_is_not_queued_again(self):
        # scancel signals the batch shell, the master and all workers at once
        job = self.submit(100000)
        self.wait_for_step("job", 3)
        self.slurm.run("scancel", job)
        self.finish(job, "CANCELLED")
        self.assertEqual(self.slurm.state(job), "CANCELLED")
        self.assertIn("stopped", (self.run_folder("job") / "log.txt").read_text())
        self.assertTrue((self.latest("job") / "manifest.json").is_file())
        failures = self.run_folder("job") / "failures.jsonl"
        self.assertFalse(failures.exists() and failures.read_text())

    @unittest.skipUnless(os.environ.get("TROUPE_SOAK"), "TROUPE_SOAK is not set")
    def test_a_job_goes_on_over_its_time_limits_by_itself_I8(self):
        # nobody shortens what Slurm waits: a minute of time, two of the queue
        def short(script):
            script = re.sub(r"#SBATCH --signal=.*", "#SBATCH --signal=B:TERM@15",
                            script)
            return script.replace("##SBATCH --time=24:00:00", "#SBATCH --time=1")
        pace = self.folder / "pace.py"
        pace.write_text("""
import json, os, sys, time
for line in sys.stdin:
    row = json.loads(line)
    if row["id"] % 16 == 0 and os.path.exists("slow"):
        time.sleep(1)
    score = len(row["response"]) % 3
    print(json.dumps({"id": row["id"], "score": score}), flush=True)
""")
        slow = ["models.reward=null", "reward.kind=process",
                f"reward.command=python3 {pace}", "reward.workers=1",
                "run.save_every=100"]
        (self.folder / "slow").touch()
        begin = time.monotonic()
        job = self.submit(100, *slow, edit=short)
        restarts = 0
        while self.wait_while(job, *ENDING, seconds=180) == "PENDING":
            restarts += 1
            self.wait_while(job, *WAITING, seconds=REQUEUED_WITHIN_S)
        print(f"{restarts} restarts in {time.monotonic() - begin:.0f} s")
        self.assertGreaterEqual(restarts, 1)
        self.finish(job)
        (self.folder / "slow").unlink()
        self.check_as_undisturbed(100, *slow)


if __name__ == "__main__":
    # the daemons end with a test that is told to
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unittest.main()
