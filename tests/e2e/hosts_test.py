"""Runs over two and three hosts (tests/e2e/hosts.py): 20 ms away from each
other, with packets that get lost, links that are cut in the middle of a step, a
master that nobody reaches, and hosts that are lost with their memory."""
import contextlib
import json
import os
import pathlib
import signal
import struct
import time
import unittest

from hosts import Network, missing
from support import CONSTANT, TROUPE, Case, Process, read_rows, until

MISSING = missing()
if MISSING:
    print(f"skipped: {MISSING}")

DELAY_S, LOSS = 0.01, 0.01  # each way
SILENCE_S = 4
STEPS = 4
RUN = [f"run.steps={STEPS}", "run.save_every=1", "cluster.devices_per_node=1",
       "cluster.workers_per_node=1", f"cluster.silence_s={SILENCE_S}",
       *CONSTANT]
PLANS = {2: """
calls:
  actor_gen:    {devices: 0-1, strategy: d2}
  rew_inf:      {devices: 0, strategy: d1}
  ref_inf:      {devices: 1, strategy: d1}
  critic_inf:   {devices: 1, strategy: d1}
  advantages:   {devices: host}
  actor_train:  {devices: 0-1, strategy: d2}
  critic_train: {devices: 1, strategy: d1}
""", 3: """
calls:
  actor_gen:    {devices: 1-2, strategy: d2}
  rew_inf:      {devices: 0, strategy: d1}
  ref_inf:      {devices: 2, strategy: d1}
  critic_inf:   {devices: 0, strategy: d1}
  advantages:   {devices: host}
  actor_train:  {devices: 0-1, strategy: d1t2}
  critic_train: {devices: 2, strategy: d1}
"""}


@unittest.skipIf(MISSING, MISSING)
class Hosts(Case):
    num_hosts = 3
    delay_s, loss = DELAY_S, LOSS

    def setUp(self):
        super().setUp()
        self.network = Network(self.num_hosts, self.delay_s, self.loss)
        self.hosts = self.network.hosts
        programs = self.folder / "bin"
        programs.mkdir()
        self.network.write_ssh(programs / "ssh")
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"

    def tearDown(self):
        self.network.close()
        super().tearDown()

    def plan(self, num_hosts):
        return self.plan_for(num_hosts, f"nodes: {num_hosts}, "
                             "devices_per_node: 1, workers_per_node: 1")

    def plan_for(self, num_hosts, cluster):
        file = self.folder / f"{cluster.count(':')}{num_hosts}{len(cluster)}.yaml"
        file.write_text(f"cluster: {{{cluster}}}{PLANS[num_hosts]}")
        return file

    def on_host(self, host, *words):
        """A process of the test on one of the hosts."""
        first, *others = host.words(*words, folder=self.folder)
        return Process(self, others, program=first)

    def over_ssh(self, master, workers, *overrides):
        """A run over hosts, started on one of them."""
        names = ", ".join(host.address for host in workers)
        return self.on_host(master, TROUPE, *self.ppo(
            *RUN, f"cluster.nodes={len(workers)}", "cluster.launcher=ssh",
            f"cluster.hosts=[{names}]", f"cluster.bind={master.address}",
            f"plan={self.plan(len(workers))}", *overrides))

    def undisturbed(self, num_hosts, *overrides):
        """The same run on one host, with as many workers."""
        here = [f"cluster.{key}_per_node={num_hosts}"
                for key in ("devices", "workers")]
        cluster = (f"nodes: 1, devices_per_node: {num_hosts}, "
                   f"workers_per_node: {num_hosts}")
        self.troupe(*self.ppo(*RUN, *here, *overrides, "run.name=one",
                              f"plan={self.plan_for(num_hosts, cluster)}"))
        return self.outcome("one")

    def workers(self):
        return sorted(pid for pid, words in self.processes().items()
                      if " worker --join" in words
                      and not words.startswith(("sh ", "/bin/sh ")))

    def check_bits(self, num_hosts, *overrides):
        for got, wanted in zip(self.outcome("ppo"),
                               self.undisturbed(num_hosts, *overrides)):
            self.assertEqual(got, wanted)

    def check_latency_and_loss(self):
        switch = self.network.switch
        self.assertGreater(switch.frames, 1000)
        self.assertGreater(switch.lost, switch.frames * LOSS / 2)


class Far(Hosts):
    def test_two_hosts_far_apart_have_the_bits_of_one_I1_I8(self):
        done = self.over_ssh(self.hosts[0], self.hosts[:2]).finish()
        self.assertEqual(done.code, 0, done.err)
        self.check_latency_and_loss()
        self.check_bits(2)

    def test_three_hosts_far_apart_have_the_bits_of_one_I1_I8(self):
        done = self.over_ssh(self.hosts[0], self.hosts).finish()
        self.assertEqual(done.code, 0, done.err)
        self.check_latency_and_loss()
        self.check_bits(3)


class Cut(Hosts):
    """The master is on a host of its own, which no worker shares."""

    def start_in_the_middle(self, *overrides):
        """A run in its second step, whose workers are on the other hosts."""
        run = self.over_ssh(self.hosts[0], self.hosts[1:], *overrides)
        self.wait_for_step("ppo", 1)
        until(lambda: self.latest("ppo").is_dir(), "a checkpoint")
        return run

    def test_a_cut_link_is_named_in_time_and_the_run_goes_on_I7_I8(self):
        run = self.start_in_the_middle()
        cut = time.monotonic()
        self.hosts[2].link("down")
        until(lambda: self.status().get("last_failure"), "a failure")
        self.assertLess(time.monotonic() - cut, SILENCE_S + 3)
        time.sleep(2)  # an attempt to start over finds the host still away
        self.hosts[2].link("up")
        done = run.finish()
        self.assertEqual(done.code, 0, done.err)
        first = read_rows(self.run_folder("ppo") / "failures.jsonl")[0]
        self.assertRegex(first["who"], "worker 1 ")
        self.check_bits(2)

    def test_a_partitioned_master_never_shares_its_folder_I5_I8(self):
        """Its workers stop in their step and wake up when another master has
        taken the folder over: what they still write must reach no file of it
        (R10)."""
        first = self.start_in_the_middle()
        old = self.workers()
        master, *others = self.hosts
        self.network.switch.cut(*((master, other) for other in others))
        refused = self.over_ssh(others[0], others).finish()
        self.assertEqual(refused.code, 2, refused.err)
        self.assertIn("active in another process", refused.err)
        for pid in old:
            os.kill(pid, signal.SIGSTOP)
        first.send(signal.SIGKILL)  # its host is lost
        first.finish()
        second = self.over_ssh(others[0], others)
        until(lambda: self.status().get("attempt") == 2
              and self.status()["state"] == "running", "the second attempt")
        for pid in old:
            os.kill(pid, signal.SIGCONT)
        self.assertEqual(second.finish().code, 0, second.err)
        self.check_bits(2)
        until(lambda: not self.workers(), "the end of the stale workers", 20)


class LostHost(Hosts):
    """A host that is lost with all its memory: every process on it is killed,
    the keeper of its snapshots too. The master is on a host of its own."""
    delay_s = loss = 0.0
    num_files = 2  # of a snapshot in a host's memory: actor and critic
    overrides = ["run.steps=40", "run.save_every=0"]

    def on(self, host):
        """Processes of this run on a host."""
        return host.having(self.all_processes())

    def memory_files(self, host):
        """The memory files of a host's keeper: [(path, number of the snapshot
        that it is part of)]."""
        found = []
        for keeper in set(self.keepers()) & set(self.on(host)):
            for file in pathlib.Path(f"/proc/{keeper}/fd").iterdir():
                if "troupe-kept" not in os.readlink(file):
                    continue
                with open(file, "rb") as content:
                    start = content.read(16)
                if start.startswith(b"TPLANES1"):
                    found.append((file, struct.unpack("<8xQ", start)[0]))
        return found

    def recorded(self):
        file = self.run_folder("ppo") / "snapshot/record.json"
        return json.loads(file.read_text())["id"] if file.exists() else None

    def stop_when_all_is_copied(self, run):
        """Stops the master at a moment when both workers' hosts have the newest
        two snapshots, with the copies; returns the newest."""
        def found():
            run.send(signal.SIGSTOP)
            time.sleep(0.1)  # what workers were told to do is done then, or not
            numbers = [sorted(number for _, number in self.memory_files(host))
                       for host in self.hosts[1:]]
            newest = sorted({*numbers[0], *numbers[1]})[-2:]
            if (len(newest) == 2 and self.recorded() == newest[-1] and all(
                    each == sorted(newest * self.num_files) for each in numbers)):
                return newest[-1]
            run.send(signal.SIGCONT)
            return None
        return until(found, "a moment when all is copied")

    def lose_host(self, run):
        """Kills all that runs on a host and lets the master notice it."""
        for pid in self.on(self.hosts[2]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.send(signal.SIGCONT)
        done = run.finish()
        self.assertEqual(done.code, 0, done.err)
        self.check_bits(2, *self.overrides)
        return [row["lost_steps"] for row in self.failures()]

    def test_costs_no_step_I8(self):
        run = self.over_ssh(self.hosts[0], self.hosts[1:], *self.overrides)
        self.stop_when_all_is_copied(run)
        self.assertEqual(self.lose_host(run), [0])

    def test_before_the_last_step_is_copied_costs_that_step_I8(self):
        run = self.over_ssh(self.hosts[0], self.hosts[1:], *self.overrides)
        newest = self.stop_when_all_is_copied(run)
        for file, number in self.memory_files(self.hosts[1]):
            if number == newest:
                with open(file, "r+b") as content:
                    content.write(bytes(16))
        self.assertEqual(self.lose_host(run), [0, 1])


if __name__ == "__main__":
    unittest.main()
