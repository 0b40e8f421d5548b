"""How a run ends other than by its last step: workers that die, signals, time
limits. Whatever the way, no process is left (Case.tearDown checks)."""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import time
import unittest

from support import Case, read_rows, until

LONG = "run.steps=100000"
ENDS_AT_LOSS = "cluster.max_restarts=0"  # recovery_test.py has the others


def catches(pid, number):
    """Whether the process has a handler of this signal."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = int(re.search(r"SigCgt:\s*(\S+)", status).group(1), 16)
    return mask >> (number - 1) & 1


@contextlib.contextmanager
def leased(file):
    """Holds a file, so that whoever opens it waits; gives the question whether
    somebody does."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # the kernel asks back
    try:
        with open(file, "rb") as held:
            fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            yield lambda: fcntl.fcntl(held, fcntl.F_GETLEASE) != fcntl.F_WRLCK
    finally:
        signal.signal(signal.SIGIO, before)


def exchange_with_loop(folder):
    """Puts a link to itself in the place of `folder`, at once: at no moment is
    there nothing. The folder gets the name `lost` beside it."""
    lost = folder.with_name("lost")
    lost.symlink_to(folder.name)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of linux/fs.h
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(here, bytes(folder), here, bytes(lost), exchange) != 0:
        raise OSError(ctypes.get_errno(), "renameat2", str(folder))


class Stop(Case):
    def running(self, *overrides):
        """A PPO run that has done its first step."""
        process = self.start(*self.ppo(LONG, *overrides))
        self.wait_for_step("ppo", 1)
        return process

    def state(self):
        """Returns the run's status.json; empty before there is one."""
        file = self.run_folder("ppo") / "status.json"
        return json.loads(file.read_text())["state"] if file.exists() else ""

    def check_resumable(self, done):
        """Checks that there is a checkpoint of the last step in the metrics."""
        step = max(self.metrics("ppo"))
        self.assertEqual(self.latest("ppo").name, f"step_{step:06}")
        self.assertTrue((self.latest("ppo") / "manifest.json").is_file())
        again = self.troupe(*self.ppo(f"run.steps={step + 1}"))
        self.assertEqual(max(self.metrics("ppo")), step + 1)
        return done, again

    def test_a_killed_worker_ends_the_run_in_two_seconds(self):
        # a warning in a worker's log is nothing that it died of
        process = self.running("models.critic.path=data/base",
                               "models.reward.path=data/base", ENDS_AT_LOSS)
        victim = self.workers()[1]
        begin = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        done = process.finish()
        self.assertLess(time.monotonic() - begin, 2)
        self.assertEqual(done.code, 1, done.err)
        last = self.check_first_cause(done)
        self.assertIn(str(victim), last)
        self.assertNotIn("Traceback", done.err)
        failure = read_rows(self.run_folder("ppo") / "failures.jsonl")[-1]
        self.assertIn(str(victim), failure["who"])
        self.assertEqual(failure["cause"], "")
        self.assertNotIn("root cause", last)
        under_way, = re.findall(r"(?:in|of) step (\d+)", failure["what"])
        self.assertGreaterEqual(int(under_way), int(failure["when"].split()[1]),
                                "steps count from 1 everywhere")
        status = json.loads(
            self.troupe("status", "runs/ppo", "--json").stdout)
        self.assertEqual(status["state"], "failed")
        self.assertTrue(status["last_failure"])
        self.assertEqual({worker["state"] for worker in status["workers"]},
                         {"lost"})

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

    def test_a_signal_at_any_moment_of_the_start_is_a_clean_end(self):
        # from the constructors of the libraries to the first step; before
        # them, while the kernel and the linker load it, nobody can catch one
        codes = {signal.SIGTERM: 75, signal.SIGINT: 130}
        for i, delay_s in enumerate([0, .02, .05, .1, .15, .2, .3, .5, 1, 2]):
            number = list(codes)[i % 2]
            process = self.start(*self.ppo(LONG, f"run.name=r{i}"))
            until(lambda: catches(process.popen.pid, number), "a handler")
            time.sleep(delay_s)
            process.send(number)
            done = process.finish()
            with self.subTest(delay_s=delay_s, signal=number):
                self.assertEqual(done.code, codes[number], done.err)
                self.assertLessEqual(len(done.err.splitlines()), 1, done.err)
                self.assertIn("stopped", done.out + done.err)
                self.assertEqual(self.processes(), {})

    def test_a_signal_before_the_session_is_a_clean_end(self):
        # no process writes the settings, so there is never a session
        os.mkfifo(self.folder / "never.yaml")
        for verb, number, code in (("train", signal.SIGTERM, 75),
                                   ("train", signal.SIGHUP, 75),
                                   ("eval", signal.SIGTERM, 1),
                                   ("eval", signal.SIGINT, 130),
                                   ("doctor", signal.SIGTERM, 1)):
            process = self.start(verb, "never.yaml")
            until(lambda: catches(process.popen.pid, number), "a handler", 10)
            process.send(number)
            done = process.finish()
            with self.subTest(verb=verb, signal=number):
                self.assertEqual(done.code, code, done.err)
                self.assertIn("error: stopped by a signal", done.err)

    def test_a_closed_terminal_saves_and_ends_the_run(self):
        process = self.running()
        process.send(signal.SIGHUP)
        done = process.finish()
        self.assertEqual(done.code, 75, done.err)
        self.check_resumable(done)

    def test_a_closed_terminal_does_not_end_a_run_under_nohup(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            process = self.running()
        finally:
            signal.signal(signal.SIGHUP, before)
        process.send(signal.SIGHUP)
        self.wait_for_step("ppo", max(self.metrics("ppo")) + 2)
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75)

    def test_a_second_signal_exits_at_once(self):
        # the first step alone has so many passes that it would go on for long
        process = self.start(*self.ppo(LONG, "algorithm.epochs=500"))
        until(lambda: self.state() == "running", "a step under way")
        process.send(signal.SIGINT)
        until(lambda: self.state() == "stopping", "the first signal")
        process.send(signal.SIGINT)
        done = process.finish()
        self.assertEqual(done.code, 130, done.err)
        # the kernel ends them after their parent
        until(lambda: not self.processes(), "workers gone", seconds=10)
        file = self.run_folder("ppo") / "metrics.jsonl"
        self.assertFalse(file.exists() and file.read_text(), "it went on")

    def test_max_time_saves_and_exits_with_75(self):
        # longer than a slow machine takes for the start and a step
        done = self.start(*self.ppo(LONG, "run.max_time=15s")).finish()
        self.assertEqual(done.code, 75, done.err)
        self.check_resumable(done)

    def test_troupe_stop_saves_and_ends_the_run(self):
        process = self.running()
        self.troupe("stop", "runs/ppo")
        done = process.finish()
        self.assertEqual(done.code, 75, done.err)
        self.check_resumable(done)

    def check_first_cause(self, done):
        """One line that names process, actor and call."""
        self.assertEqual(done.code, 1, done.err)
        last = done.err.strip().splitlines()[-1]
        calls = ("actor_gen|rew_inf|ref_inf|critic_inf|advantages|actor_train|"
                 "critic_train|record_samples|commit")
        # between two calls: after the one before
        self.assertRegex(last,
                         rf"^error: worker \d \(pid \d+\).* (during|after) "
                         rf".*({calls}|actor@).* on (devices?|worker) \d")
        return last

    def states(self):
        status = json.loads(
            self.troupe("status", "runs/ppo", "--json").stdout)
        return [worker["state"] for worker in status["workers"]]

    def test_a_stopped_worker_is_named_with_what_it_did(self):
        process = self.running(ENDS_AT_LOSS)
        os.kill(self.workers()[1], signal.SIGSTOP)
        until(lambda: self.states() == ["ready", "suspect"], "a suspect", 5)
        self.assertIn("no heartbeat", self.check_first_cause(process.finish()))

    @contextlib.contextmanager
    def loading(self):
        """A PPO run and the pid of worker 0, which is loading its models and
        goes on with it at the end."""
        shutil.copytree(self.shared_folder / "scorer", self.folder / "held")
        process = self.start(
            *self.ppo("models.reward.path=held", ENDS_AT_LOSS))
        log = self.run_folder("ppo") / "log.txt"
        # the master has read its inputs; only worker 0 has this model
        until(lambda: log.exists() and "workers join at" in log.read_text(),
              "the start of the workers")
        with leased(self.folder / "held/model.safetensors") as opened:
            until(opened, "a worker that loads")
            yield process, next(pid for pid, words in self.processes().items()
                                if " --number 0" in words)

    def check_lost_in_loading(self, victim, done, how):
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(
            done.err.strip().splitlines()[-1],
            rf"^error: worker 0 \(pid {victim}\).*{how}.* during load of "
            r"replica \d on devices? [01]")
        failure = read_rows(self.run_folder("ppo") / "failures.jsonl")[-1]
        self.assertIn(str(victim), failure["who"])

    def test_a_worker_stopped_while_it_loads_is_named_with_what_it_did(self):
        with self.loading() as (process, victim):
            os.kill(victim, signal.SIGSTOP)
            until(lambda: self.states() == ["suspect", "ready"], "a suspect", 5)
            self.check_lost_in_loading(victim, process.finish(30),
                                       "no heartbeat")

    def test_a_worker_killed_while_it_loads_is_named_with_what_it_did(self):
        with self.loading() as (process, victim):
            begin = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            done = process.finish()
            self.assertLess(time.monotonic() - begin, 2)
            self.check_lost_in_loading(victim, done, "signal 9")

    def test_workers_of_a_killed_master_exit_within_ten_seconds(self):
        process = self.running()
        self.assertEqual(len(self.workers()), 2)
        process.send(signal.SIGKILL)
        until(lambda: not self.processes(), "workers gone", seconds=10)
        process.finish()
        status = json.loads(
            self.troupe("status", "runs/ppo", "--json").stdout)
        self.assertEqual(status["state"], "lost")

    def test_after_a_killed_master_the_run_continues(self):
        process = self.running("run.save_every=1")
        self.wait_for_step("ppo", 3)
        self.wait_for_checkpoint("ppo")
        process.send(signal.SIGKILL)
        process.finish()
        until(lambda: not self.processes(), "workers gone", seconds=10)
        step = int(self.latest("ppo").name.removeprefix("step_"))
        self.troupe(*self.ppo(f"run.steps={step + 2}", "run.save_every=1"))
        self.assertEqual(sorted(self.metrics("ppo")),
                         list(range(1, step + 3)))

    def test_hosts_that_cannot_be_reached_end_the_run(self):
        # an ssh that ends while those of later hosts are started
        program = self.folder / "bin/ssh"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho \"ssh: no host $3\" >&2; exit 255\n")
        program.chmod(0o755)
        self.environment["PATH"] = f"{program.parent}:{os.environ['PATH']}"
        hosts = [f"host{i}" for i in range(16)]
        done = self.start(*self.sft(
            "cluster.launcher=ssh", f"cluster.hosts=[{', '.join(hosts)}]",
            "cluster.nodes=16", "cluster.devices_per_node=1",
            "cluster.workers_per_node=1", "cluster.bind=127.0.0.1",
            "plan=data_parallel", "data.batch_size=16")).finish(30)
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.err, r"error: worker \d+ .*exit code 255")
        self.assertIn("ssh: no host host", done.err)

    def test_a_run_folder_that_is_lost_ends_the_run(self):
        # as a network file system may lose it: every look at it is an error
        process = self.running("run.save_every=1", "eval.every=1",
                               "eval.data=data/prompts.jsonl", "eval.max_rows=2",
                               "run.keep_best=critic/rewards/mean")
        folder = self.run_folder("ppo")
        exchange_with_loop(folder)
        done = process.finish(30)
        folder.unlink()
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("Too many levels of symbolic links", done.err)

    def suspended(self, name, stop):
        """A run whose processes are stopped by `stop`, all of them."""
        process = self.start(*self.ppo(LONG, f"run.name={name}"))
        self.wait_for_step(name, 1)
        everybody = [pid for pid, words in self.processes().items()
                     if f"run.name={name}" in words or f"runs/{name}/" in words]
        self.assertEqual(len(everybody), 3)
        stop(process.popen.pid, everybody)
        until(lambda: all(re.search(r"State:\s*T", pathlib.Path(
            f"/proc/{pid}/status").read_text()) for pid in everybody),
              "all are stopped", 5)
        return process, everybody

    def test_a_suspended_run_continues_after_sigcont(self):
        def by_terminal(master, _):  # workers have their own groups
            os.kill(master, signal.SIGTSTP)

        def by_scheduler(_, everybody):
            for pid in everybody:
                os.kill(pid, signal.SIGSTOP)

        runs = {"typed": self.suspended("typed", by_terminal),
                "slurm": self.suspended("slurm", by_scheduler)}
        time.sleep(12)  # longer than any process may be silent
        os.kill(runs["typed"][0].popen.pid, signal.SIGCONT)
        for pid in runs["slurm"][1]:
            os.kill(pid, signal.SIGCONT)
        for name, (process, _) in runs.items():
            with self.subTest(name):
                self.wait_for_step(name, max(self.metrics(name)) + 2, 20)
                process.send(signal.SIGTERM)
                self.assertEqual(process.finish().code, 75, process.err)

    def test_a_busy_page_port_is_a_warning_and_another_port(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = self.troupe(*self.sft(f"trace.port={port}"))
        self.assertIn(f"trace.port: trace page: cannot listen on 127.0.0.1:{port}",
                      done.stderr)
        self.assertRegex(done.stdout, r"watch the run at http://127\.0\.0\.1:\d+/")
        self.assertNotIn(f"127.0.0.1:{port}/", done.stdout)

    def test_two_masters_do_not_share_a_run_folder(self):
        process = self.running()
        second = self.troupe(*self.ppo(LONG), code=2)
        self.assertRegex(second.stderr, r"^error: ")
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75)


if __name__ == "__main__":
    unittest.main()
