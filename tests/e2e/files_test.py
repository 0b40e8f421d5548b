"""Runs over hosts that share no files: a worker's host has an empty folder in
the place of the run, the models and the data. What it reads comes from the
master, what it writes arrives there, and nothing of it stays."""
import contextlib
import os
import signal
import unittest

from hosts import Network, missing
from support import CONSTANT, SOURCE, TROUPE, Case, Process, read_rows, until

MISSING = missing()
if MISSING:
    print(f"skipped: {MISSING}")

STEPS = 3
LONG = "run.steps=10"  # long enough to be killed or stopped in the middle
RUN = [f"run.steps={STEPS}", "run.save_every=1", "run.keep=2",
       "cluster.devices_per_node=1", "cluster.workers_per_node=1",
       "eval.data=data/prompts.jsonl", "eval.max_rows=8", "eval.every=1",
       "run.keep_best=val-core/prompts/reward/mean@1", *CONSTANT]
# the second worker trains the actor, so it writes its checkpoints
PLAN = """
calls:
  actor_gen:    {devices: 0-1, strategy: d2}
  rew_inf:      {devices: 0, strategy: d1}
  ref_inf:      {devices: 1, strategy: d1}
  critic_inf:   {devices: 0, strategy: d1}
  advantages:   {devices: host}
  actor_train:  {devices: 1, strategy: d1}
  critic_train: {devices: 0, strategy: d1}
"""


@unittest.skipIf(MISSING, MISSING)
class Files(Case):
    def setUp(self):
        super().setUp()
        self.network = Network(3)
        self.master, *self.others = self.network.hosts
        programs = self.folder / "bin"
        programs.mkdir()
        self.network.write_ssh(programs / "ssh")
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir()
        for host in self.others:
            self.hide(host)

    def tearDown(self):
        self.network.close()
        super().tearDown()

    def hide(self, host):
        """Gives the host disks of its own, without anything on them."""
        for folder in (self.shared_folder, self.folder):
            host.hide(folder)
        host.run("mkdir", str(self.tmp))

    def left_on(self, host):
        """What is in the folders of a host, beside the TMPDIR itself."""
        return host.output("find", self.folder, "-mindepth", "1", "-not",
                           "-path", self.tmp).split()

    def check_nothing_is_left(self):
        for host in self.others:
            self.assertEqual(self.left_on(host), [])
        self.assertEqual(os.listdir(self.tmp), [])
        self.assertEqual(list(self.run_folder("ppo").glob(".probe*")), [])

    def plan(self, text, nodes):
        file = self.folder / f"plan{nodes}.yaml"
        per_node = 2 // nodes
        file.write_text(f"cluster: {{nodes: {nodes}, devices_per_node: "
                        f"{per_node}, workers_per_node: {per_node}}}{text}")
        return file

    def over(self, hosts, *overrides, plan=PLAN):
        names = ", ".join(host.address for host in hosts)
        first, *others = self.master.words(TROUPE, *self.ppo(
            *RUN, f"cluster.nodes={len(hosts)}", "cluster.launcher=ssh",
            f"cluster.hosts=[{names}]", f"cluster.bind={self.master.address}",
            f"cluster.env.TMPDIR={self.tmp}",
            f"plan={self.plan(plan, len(hosts))}", *overrides),
            folder=self.folder)
        return Process(self, others, program=first)

    def check_bits(self, *overrides, plan=PLAN):
        """Compares with the same run on one host, with as many workers."""
        here = [f"cluster.{key}_per_node=2" for key in ("devices", "workers")]
        self.troupe(*self.ppo(*RUN, *here, "run.name=one",
                              f"plan={self.plan(plan, 1)}", *overrides))
        for got, wanted in zip(self.outcome("ppo"), self.outcome("one")):
            self.assertEqual(got, wanted)
        for file in (self.run_folder("one") / "eval").glob("*"):
            mine = self.run_folder("ppo") / "eval" / file.name
            self.assertEqual(mine.read_text(), file.read_text())
        best = [(self.run_folder(name) / "best").resolve().name
                for name in ("ppo", "one")]
        self.assertEqual(*best)

    def check_run_folder(self):
        """Checkpoints are whole models, and traces and logs are all there."""
        run = self.run_folder("ppo")
        one = self.run_folder("one")
        for folder in (run / "latest", run / "best"):
            names = {str(file.relative_to(folder.resolve()))
                     for file in folder.resolve().rglob("*")}
            wanted = one / folder.name
            self.assertEqual(names, {str(file.relative_to(wanted.resolve()))
                                     for file in wanted.resolve().rglob("*")})
        self.assertEqual({file.name for file in (run / "trace").iterdir()},
                         {file.name for file in (one / "trace").iterdir()})
        self.assertEqual({file.name for file in (run / "checkpoints").iterdir()},
                         {file.name for file in (one / "checkpoints").iterdir()})
        tracks = {piece["track"] for piece in self.slices("ppo")
                  if piece["name"] == "actor_train"}
        self.assertIn("device 1", tracks)

    def test_a_host_without_the_files_has_the_bits_of_one_I1_I8(self):
        done = self.over([self.master, self.others[0]]).finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("workers 1 do not share the files of the run", done.out)
        self.check_nothing_is_left()
        self.check_bits()
        self.check_run_folder()

    def kill_a_worker(self, *overrides):
        """The first failure of a run whose worker was killed after its second
        step, and which had the right end all the same."""
        run = self.over(self.others, LONG, *overrides)
        self.wait_for_step("ppo", 2)
        os.kill(self.workers_over_ssh()[0], signal.SIGKILL)
        done = run.finish()
        self.assertEqual(done.code, 0, done.err)
        self.check_nothing_is_left()
        self.check_bits(LONG, *overrides)
        return self.failures()[0]

    def test_a_killed_worker_is_recovered_from_disk_I8(self):
        self.kill_a_worker("run.snapshot_every=0")

    def test_a_killed_worker_is_recovered_from_memory_I8(self):
        failure = self.kill_a_worker("run.save_every=10")
        self.assertLess(failure["lost_steps"], 2)  # no checkpoint was there

    def test_a_lost_host_is_recovered_from_the_copies_of_another_I8(self):
        """All that runs on a host is killed, the keeper of its memory too."""
        run = self.over(self.others, LONG, "run.save_every=10")
        self.wait_for_step("ppo", 3)
        for pid in self.others[1].having(self.all_processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        done = run.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertLess(self.failures()[0]["lost_steps"], 3)  # nothing was saved
        self.check_nothing_is_left()
        self.check_bits(LONG, "run.save_every=10")

    def test_spares_take_the_place_of_a_lost_worker_I8(self):
        run = self.over(self.others, LONG, "cluster.spares=2")
        self.wait_for_step("ppo", 1)
        working = {worker["pid"] for worker in self.status()["workers"]}
        spares = until(lambda: len(self.workers_over_ssh()) == 4
                       and set(self.workers_over_ssh()) - working, "two spares")
        os.kill(min(working), signal.SIGKILL)
        done = run.finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(len(self.failures()), 1)
        self.assertEqual({worker["pid"] for worker in self.status()["workers"]},
                         spares)
        self.check_nothing_is_left()
        self.check_bits(LONG)

    def test_a_stopped_run_continues_on_such_hosts_I8(self):
        first = self.over(self.others, LONG)
        self.wait_for_step("ppo", 2)
        first.send(signal.SIGTERM)
        done = first.finish()
        self.assertEqual(done.code, 75, done.err)
        self.check_nothing_is_left()
        done = self.over(self.others, LONG).finish()
        self.assertEqual(done.code, 0, done.err)
        self.check_nothing_is_left()
        self.check_bits(LONG)

    def workers_over_ssh(self):
        return sorted(pid for pid, words in self.processes().items()
                      if " worker --" in words
                      and not words.startswith(("sh ", "/bin/sh ")))

    def test_true_on_hosts_that_do_not_share_is_one_message(self):
        done = self.over([self.master, self.others[0]],
                         "cluster.shared_files=true").finish()
        self.assertEqual(done.code, 2, done.err)
        said = f"worker 1 on {self.others[0].address}, which does not see"
        self.assertEqual(done.err.count(said), 1, done.err)
        self.assertIn("cluster.shared_files=auto", done.err)
        self.check_nothing_is_left()

    def test_a_host_without_room_says_so(self):
        host = self.others[0]
        host.run("mount", "-t", "tmpfs", "-o", "size=64k", "none",
                 str(self.tmp))
        done = self.over([self.master, host]).finish()
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.err, f"no room for .* in {self.tmp}/troupe-files")
        self.check_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
