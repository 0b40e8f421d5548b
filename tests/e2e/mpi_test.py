"""Workers that OpenMPI's mpirun starts, one mpirun each, on two hosts that are
this one by two names."""
import os
import shutil
import signal
import unittest

from support import Case, read_rows, tree_bytes, until, without_times

MISSING = "" if shutil.which("mpirun") else "no mpirun on this machine"
if MISSING:
    print(f"skipped: {MISSING}")
STEPS = 40
RUN_S = 150  # of a run of so many steps, with a recovery
RUN = [f"run.steps={STEPS}", "run.save_every=2", "plan=data_parallel"]
TWO = ["cluster.nodes=2", "cluster.devices_per_node=1",
       "cluster.workers_per_node=1"]


@unittest.skipIf(MISSING, MISSING)
class Mpi(Case):
    here = None  # what one host computes

    def setUp(self):
        super().setUp()
        if os.geteuid() == 0:  # OpenMPI wants to be asked twice
            self.environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def words(self, *overrides):
        return self.ppo("run.name=far", *RUN, *TWO, "cluster.launcher=mpi",
                        "cluster.hosts=[localhost, 127.0.0.1]",
                        "cluster.bind=127.0.0.1", *overrides)

    def worker(self, number):
        """Its pid; none while it is still a copy of mpirun."""
        return [pid for pid, words in self.processes().items()
                if f" --number {number} " in words
                and not words.startswith("mpirun")]

    def found(self, name):
        return (tree_bytes(self.latest(name), "*/model.safetensors"),
                [without_times(line) for line in self.metrics(name).values()],
                read_rows(self.run_folder(name) / "samples.jsonl"))

    def check_as_here(self):
        if Mpi.here is None:
            self.troupe(*self.ppo("run.name=here", *RUN,
                                  "cluster.devices_per_node=2",
                                  "cluster.workers_per_node=2"),
                        seconds=RUN_S)
            Mpi.here = self.found("here")
        for got, wanted in zip(self.found("far"), Mpi.here):
            self.assertEqual(got, wanted)

    def test_workers_of_mpirun_have_the_bits_of_one_host_I1(self):
        process = self.start(*self.words("cluster.env.TROUPE_TEST_MPI=a b"))
        workers = until(lambda: all(found := [self.worker(0), self.worker(1)])
                        and found, "both workers")
        with open(f"/proc/{workers[1][0]}/environ", "rb") as variables:
            self.assertIn(b"\0TROUPE_TEST_MPI=a b\0", variables.read())
        self.assertEqual(sum(words.startswith("mpirun ")
                             for words in self.processes().values()), 2)
        self.assertFalse(any("a b" in words for words in
                             self.processes().values() if "mpirun" in words))
        done = process.finish(RUN_S)
        self.assertEqual(done.code, 0, done.err)
        self.check_as_here()

    def test_a_killed_worker_is_started_again_by_another_mpirun_I8(self):
        process = self.start(*self.words())
        self.wait_for_step("far", 3)
        self.wait_for_checkpoint("far")
        os.kill(self.worker(1)[0], signal.SIGKILL)
        done = process.finish(RUN_S)
        self.assertEqual(done.code, 0, done.err)
        failure, = read_rows(self.run_folder("far") / "failures.jsonl")
        self.assertIn("worker 1", failure["who"])
        self.check_as_here()

    def test_a_killed_mpirun_is_a_lost_worker_I8(self):
        process = self.start(*self.words())
        self.wait_for_step("far", 3)
        self.wait_for_checkpoint("far")
        victim = [pid for pid, words in self.processes().items()
                  if words.startswith("mpirun") and " --number 0 " in words][0]
        os.kill(victim, signal.SIGKILL)
        done = process.finish(RUN_S)
        self.assertEqual(done.code, 0, done.err)
        self.check_as_here()

    def test_term_saves_and_leaves_nothing(self):
        process = self.start(*self.words("run.steps=100000"))
        self.wait_for_step("far", 2)
        process.send(signal.SIGTERM)
        done = process.finish()
        self.assertEqual(done.code, 75, done.err)
        self.assertTrue((self.latest("far") / "manifest.json").is_file())
        until(lambda: not self.processes(), "the end of all processes", 10)

    def test_hosts_of_a_job_of_pbs_need_no_settings(self):
        hosts = self.folder / "hosts"
        hosts.write_text("localhost\nlocalhost\n127.0.0.1\n")
        self.environment["PBS_NODEFILE"] = str(hosts)
        self.troupe(*self.ppo("run.name=far", "plan=data_parallel",
                              "cluster.nodes=auto",
                              "cluster.devices_per_node=1",
                              "cluster.workers_per_node=1",
                              "cluster.bind=127.0.0.1"))
        config = (self.run_folder("far") / "config.yaml").read_text()
        self.assertIn("nodes: 2", config)

    def test_copies_that_mpirun_started_are_refused(self):
        self.environment["OMPI_COMM_WORLD_SIZE"] = "4"
        done = self.troupe(*self.ppo("run.name=far"), code=2)
        self.assertIn("got 4 that mpirun started", done.stderr)


if __name__ == "__main__":
    unittest.main()
