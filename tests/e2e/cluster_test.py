"""A run over two hosts: two network namespaces on a bridge, each with an address
of its own, reached by programs named ssh and srun that enter them. Everything
between the processes crosses a network; files are shared, as on a cluster."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

from support import CONSTANT, TROUPE, Case, read_rows, until, without_times

NAME = f"tr{os.getpid() % 100000}"
HOSTS = ["10.77.214.11", "10.77.214.12"]
MASTER = "10.77.214.1"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def missing():
    """Why this machine cannot have two hosts, or nothing."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "needs root and iproute2"
    try:
        ip("link", "add", NAME, "type", "bridge")
        ip("link", "del", NAME)
        ip("netns", "add", NAME)
        ip("netns", "exec", NAME, "true")
        ip("netns", "del", NAME)
    except subprocess.CalledProcessError as error:
        return error.stderr.strip()
    return ""


MISSING = missing()
if MISSING:
    print(f"skipped: {MISSING}")


class Sniffer:
    """Everything that crosses a network device, while the block runs."""
    ALL_PROTOCOLS = 3
    KERNEL_BYTES = 256 << 20

    def __init__(self, device):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                    socket.htons(self.ALL_PROTOCOLS))
        so_rcvbufforce = 33
        self.socket.setsockopt(socket.SOL_SOCKET, so_rcvbufforce,
                               self.KERNEL_BYTES)
        self.socket.bind((device, 0))
        self.socket.settimeout(0.1)
        self.packets, self.ending = [], False
        self.thread = threading.Thread(target=self.listen)

    def listen(self):
        while True:
            try:
                self.packets.append(self.socket.recv(1 << 17))
            except TimeoutError:
                if self.ending:
                    return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending = True
        self.thread.join()
        self.socket.close()

    def saw(self, some_bytes):
        return any(some_bytes in packet for packet in self.packets)

    def size(self):
        return sum(map(len, self.packets))


@unittest.skipIf(MISSING, MISSING)
class Cluster(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ip("link", "add", NAME, "type", "bridge")
        ip("address", "add", f"{MASTER}/24", "dev", NAME)
        ip("link", "set", NAME, "up")
        for i, address in enumerate(HOSTS):
            space, near, far = f"{NAME}n{i}", f"{NAME}a{i}", f"{NAME}b{i}"
            ip("netns", "add", space)
            ip("link", "add", near, "type", "veth", "peer", "name", far)
            ip("link", "set", near, "master", NAME, "up")
            ip("link", "set", far, "netns", space)
            inside = ("-n", space)
            ip(*inside, "address", "add", f"{address}/24", "dev", far)
            ip(*inside, "link", "set", far, "up")
            ip(*inside, "link", "set", "lo", "up")

    @classmethod
    def tearDownClass(cls):
        for i in range(len(HOSTS)):
            ip("netns", "del", f"{NAME}n{i}")
        ip("link", "del", NAME)
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        programs = self.folder / "bin"
        programs.mkdir()
        self.write_program(programs / "ssh", f"""
            [ "$1 $2" = "-o BatchMode=yes" ] || exit 255
            [ -e {self.folder}/gone ] && [ "$3" = {HOSTS[1]} ] && exit 255
            case "$3" in {HOSTS[0]}) space={NAME}n0;; {HOSTS[1]}) space={NAME}n1;;
            *) echo "ssh: no host $3" >&2; exit 255;; esac
            cd / && exec ip netns exec $space sh -c "$4" """)
        self.write_program(programs / "srun", f"""
            while [ "${{1#--}}" != "$1" ]; do
              case "$1" in --relative=*) space={NAME}n${{1#--relative=}};; esac
              shift
            done
            exec ip netns exec $space "$@" """)
        self.environment["PATH"] = f"{programs}:{os.environ['PATH']}"

    def write_program(self, file, text):
        file.write_text("#!/bin/sh\n" + text)
        file.chmod(0o755)

    def over_ssh(self, *overrides):
        hosts = ", ".join(HOSTS)
        return self.ppo("cluster.nodes=2", "cluster.devices_per_node=1",
                        "cluster.workers_per_node=1", "cluster.launcher=ssh",
                        f"cluster.hosts=[{hosts}]", "plan=data_parallel",
                        *overrides)

    def lines(self, name):
        return [without_times(line) for line in self.metrics(name).values()]

    def test_two_hosts_have_the_bits_of_one_I1_I8(self):
        self.troupe(*self.over_ssh("run.name=wide"))
        self.troupe(*self.ppo("run.name=near", "cluster.devices_per_node=2",
                              "cluster.workers_per_node=2",
                              "plan=data_parallel"))
        self.assertEqual(self.lines("wide"), self.lines("near"))
        log = (self.run_folder("wide") / "log.txt").read_text()
        self.assertIn(f"workers join at {MASTER}:", log)
        status = self.troupe("status", "runs/wide").stdout
        for host in HOSTS:
            self.assertIn(host, status)

    def prompt_tokens(self):
        """The token ids of each prompt, as bytes of a row."""
        rows = read_rows(self.folder / "data/prompts.jsonl")
        texts = "".join(json.dumps(row["prompt"]) + "\n" for row in rows)
        done = self.troupe("tokenize", "--model", "data/base", text_in=texts)
        for line in done.stdout.splitlines():
            ids = json.loads(line)
            self.assertGreater(len(ids), 3)
            yield struct.pack(f"<{len(ids)}i", *ids)

    def overheard(self, name, *overrides):
        """Returns the secrets of a run that cross the network unencrypted."""
        token = self.run_folder(name) / ".token"
        with Sniffer(f"{NAME}a1") as sniffer:
            process = self.start(*self.over_ssh(f"run.name={name}", *overrides))
            until(token.exists, "the token's file")
            self.assertEqual(token.stat().st_mode & 0o777, 0o600)
            secret = token.read_text().splitlines()[0].encode()
            self.assertEqual(process.finish().code, 0, process.err)
        self.assertFalse(token.exists())
        self.assertGreater(sniffer.size(), 100_000)
        return {"token": sniffer.saw(secret),
                "settings": sniffer.saw(b"workflow: ppo"),
                "rows": any(map(sniffer.saw, self.prompt_tokens()))}

    def test_traffic_between_hosts_is_unreadable(self):
        # settings are orders, which are never in clear
        self.assertEqual(self.overheard("open", "cluster.tls=off"),
                         {"token": True, "settings": False, "rows": True})
        self.assertEqual(self.overheard("secret"),
                         {"token": False, "settings": False, "rows": False})
        self.assertEqual(self.lines("open"), self.lines("secret"))

    def by_hand(self, name):
        """A run that waits for its workers, and their words."""
        process = self.start(*self.ppo(
            f"run.name={name}", "cluster.nodes=2", "cluster.devices_per_node=1",
            "cluster.workers_per_node=1", "cluster.launcher=manual",
            f"cluster.bind={MASTER}", "plan=data_parallel"))
        log = self.run_folder(name) / "log.txt"
        found = until(lambda: log.exists() and re.search(
            r"workers join at (\S+)", log.read_text()), "the address")
        return process, ["worker", "--join", found.group(1), "--token-file"]

    def on_host(self, number, *words):
        return subprocess.Popen(
            ["ip", "netns", "exec", f"{NAME}n{number}", TROUPE, *words],
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

    def test_a_worker_with_another_runs_file_is_refused(self):
        other, _ = self.by_hand("other")
        master, join = self.by_hand("hand")
        right = self.run_folder("hand") / ".token"
        token_only = self.folder / "token_only"
        token_only.write_text(right.read_text().splitlines()[0])
        for wrong in (self.run_folder("other") / ".token", token_only):
            worker = self.on_host(0, *join, wrong)
            _, err = worker.communicate(timeout=60)
            self.assertEqual(worker.returncode, 1, err)
            self.assertIn(f"{wrong} is not of its last start", err)
            self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertIn(f"refused {HOSTS[0]}: TLS: ",
                      (self.run_folder("hand") / "log.txt").read_text())
        workers = [self.on_host(number, *join, right) for number in (0, 1)]
        self.assertEqual(master.finish().code, 0, master.err)
        for worker in workers:
            self.assertEqual(worker.communicate(timeout=60)[1], "")
            self.assertEqual(worker.returncode, 0)
        other.send(signal.SIGTERM)
        self.assertEqual(other.finish().code, 75, other.err)

    def test_weights_move_between_hosts(self):
        plan = self.folder / "apart.yaml"
        plan.write_text("""cluster: {nodes: 2, devices_per_node: 1, workers_per_node: 1}
calls:
  actor_gen:    {devices: 1, strategy: d1}
  rew_inf:      {devices: 0, strategy: d1}
  ref_inf:      {devices: 1, strategy: d1}
  critic_inf:   {devices: 0, strategy: d1}
  advantages:   {devices: host}
  actor_train:  {devices: 0, strategy: d1}
  critic_train: {devices: 1, strategy: d1}
""")
        self.troupe(*self.over_ssh("run.name=apart", f"plan={plan}",
                                   "run.check_moves=true"))
        self.assertEqual(len(self.metrics("apart")), 3)

    def test_a_job_of_two_nodes_starts_its_workers_with_srun(self):
        self.environment |= {"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "2"}
        self.troupe(*self.ppo("run.name=job", "cluster.nodes=auto",
                              "cluster.devices_per_node=1",
                              "cluster.workers_per_node=1",
                              f"cluster.bind={MASTER}", "plan=data_parallel"))
        status = self.troupe("status", "runs/job").stdout
        for host in HOSTS:
            self.assertIn(host, status)

    def test_a_killed_remote_worker_is_named_and_all_end(self):
        process = self.start(*self.over_ssh("run.name=lost", "run.steps=500",
                                              "cluster.max_restarts=0"))
        self.wait_for_step("lost", 1)
        victim = [pid for pid, words in self.processes().items()
                  if " --number 1 " in words and "ssh" not in words
                  and "netns" not in words][0]
        os.kill(victim, signal.SIGKILL)
        done = process.finish()
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.err.strip().splitlines()[-1], r"^error: .*worker 1")
        failure = read_rows(self.run_folder("lost") / "failures.jsonl")[-1]
        self.assertIn("worker 1", failure["who"])
        until(lambda: not self.workers(), "the end of all workers", 10)

    LONG = ["run.steps=100000", "run.save_every=10",
            *CONSTANT, "models.actor.optimizer.warmup=0",
            "models.critic.optimizer.warmup=0"]

    def lose_second_host(self, name, how):
        """Starts a run and takes its second host away."""
        process = self.start(*self.over_ssh(f"run.name={name}", *self.LONG,
                                            f"cluster.lost_node={how}"))
        self.wait_for_step(name, 3)
        (self.folder / "gone").touch()
        for pid, words in self.processes().items():
            if " --number 1 " in words:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return process

    def wait_for_attempt(self, name, number, workers):
        file = self.run_folder(name) / "status.json"

        def runs():
            status = json.loads(file.read_text())
            return (status["attempt"] >= number and status["state"] == "running"
                    and len(status["workers"]) == workers)
        until(runs, f"attempt {number} of {name} on {workers} workers", 60)

    def end_and_undisturbed(self, process, name):
        """Ends the run; its metrics, and those of one that lost nothing."""
        self.wait_for_step(name, max(self.metrics(name), default=0) + 3)
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75, process.err)
        found = self.lines(name)
        self.assertEqual([line["step"] for line in found],
                         list(range(1, len(found) + 1)))
        self.troupe(*self.over_ssh("run.name=undisturbed", *self.LONG,
                                   f"run.steps={len(found)}"))
        return found, self.lines("undisturbed")

    def test_a_lost_host_is_waited_for_I8(self):
        process = self.lose_second_host("waits", "wait")
        file = self.run_folder("waits") / "failures.jsonl"
        until(lambda: file.exists() and len(read_rows(file)) >= 2,
              "an attempt without the host")
        (self.folder / "gone").unlink()
        self.wait_for_attempt("waits", 3, workers=2)
        found, undisturbed = self.end_and_undisturbed(process, "waits")
        self.assertEqual(found, undisturbed)
        actions = [row["action"] for row in read_rows(file)]
        self.assertEqual(actions[1:], ["waiting", "restarted"], actions)
        self.assertEqual(process.out.count("waiting for node 1"), 1)
        self.assertRegex(process.out, rf"node 1 \({HOSTS[1]}\) is back after ")

    def test_a_run_continues_without_a_lost_host_until_it_is_back_I1(self):
        process = self.lose_second_host("shrinks", "shrink")
        self.wait_for_attempt("shrinks", 3, workers=1)
        (self.folder / "gone").unlink()
        self.wait_for_attempt("shrinks", 4, workers=2)
        found, undisturbed = self.end_and_undisturbed(process, "shrinks")
        # sums over other numbers of dp ranks differ in their last bits
        for a, b in zip(found[:2], undisturbed[:2]):
            for key in ("critic/vf_loss", "critic/score/mean"):
                self.assertAlmostEqual(a[key], b[key], delta=1e-4 * abs(b[key]))

    def test_a_link_that_recovers_ends_nothing(self):
        # a switch that reboots; TCP tries again 12.6 s after the first loss
        process = self.start(*self.over_ssh("run.name=cut", "run.steps=100000"))
        self.wait_for_step("cut", 1)
        ip("link", "set", f"{NAME}a1", "down")
        time.sleep(12)
        ip("link", "set", f"{NAME}a1", "up")
        self.wait_for_step("cut", max(self.metrics("cut")) + 2, 25)
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75, process.err)

    def test_an_unreachable_host_is_named(self):
        words = [word.replace(HOSTS[1], "10.77.214.99")
                 for word in map(str, self.over_ssh("run.name=gone"))]
        done = self.troupe(*words, code=1)
        self.assertIn("no host 10.77.214.99", done.stderr)


if __name__ == "__main__":
    unittest.main()
