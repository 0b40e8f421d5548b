"""Strangers of the same host at the master's port: other users, containers that
share the network, programs that a model wrote. CAF's protocol (BASP) asks nobody
who he is, so whoever gets to speak it can end a run or fill its memory."""
import contextlib
import json
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess
import unittest
import urllib.error
import urllib.request

from support import Case, Process, TROUPE, until

HEADER = struct.Struct(">BBBBIQQQ")  # kind, -, -, flags, length, data, from, to
SERVER_HANDSHAKE, CLIENT_HANDSHAKE, MESSAGE = 0, 1, 2
ATOM_LETTERS = " 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
ACTORS = range(1, 60)  # of the master: they count up
HUGE = 500 << 20
FEW_FILES = 1024  # as shells and batch systems allow by default
LISTENS = "0A"


def atom(word):
    """As CAF packs a word of up to ten letters."""
    value = 0xF
    for letter in word:
        value = value << 6 | ATOM_LETTERS.index(letter)
    return value


def text(word):
    return bytes([len(word)]) + word.encode()


class Stranger:
    """An uninvited node, as far as it is let in."""

    def __init__(self, case, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        case.addCleanup(self.socket.close)
        self.socket.settimeout(1)
        self.greeted = self.greet()

    def receive(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return data

    def greet(self):
        """Whether the master answered in BASP."""
        with contextlib.suppress(OSError):
            kind, _, _, _, length, *_ = HEADER.unpack(self.receive(HEADER.size))
            if kind != SERVER_HANDSHAKE:
                return False
            payload = self.receive(length)
            # its node id, with another process number in it
            node = payload[:32]
            self.node = node[:8] + bytes([node[8] ^ 0x55]) + node[9:]
            self.say(CLIENT_HANDSHAKE, self.node)
            return True
        return False

    def say(self, kind, payload=b"", length=None, to=0):
        self.socket.sendall(HEADER.pack(
            kind, 0, 0, 0, len(payload) if length is None else length, 0, 0, to)
            + payload)


    def order(self, word, actor):
        """Sends an actor of the master a message of one atom."""
        self.say(MESSAGE, b"\0\0\0" + text("@<>+@atom")
                 + struct.pack(">Q", atom(word)), to=actor)


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+) kB", status).group(1)) << 10


def ports_of(pid):
    """The TCP ports at which a process listens."""
    sockets = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            sockets.add(link.readlink().name)
    lines = pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    for _, address, _, state, *_, inode in (line.split()[:10] for line in lines):
        if state == LISTENS and f"socket:[{inode}]" in sockets:
            yield int(address.split(":")[1], 16)


class Strangers(Case):
    def port_of(self, name):
        log = self.run_folder(name) / "log.txt"
        found = until(lambda: log.exists() and re.search(
            r"workers join at 127\.0\.0\.1:(\d+)", log.read_text()), "the port")
        return int(found.group(1))

    def test_strangers_cannot_give_orders_to_a_run(self):
        process = self.start(*self.sft("run.steps=100000", "run.save_every=0"))
        self.wait_for_step("sft", 1)
        greeted = False
        with contextlib.suppress(ConnectionRefusedError):
            stranger = Stranger(self, self.port_of("sft"))
            greeted = stranger.greeted
            for actor in ACTORS if greeted else ():
                stranger.order("stop", actor)
        step = max(self.metrics("sft"))
        self.wait_for_step("sft", step + 2, seconds=20)
        self.assertFalse(greeted, "it speaks to anybody")
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75, process.err)

    def test_silent_strangers_at_every_port_end_no_run(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        process = Process(
            self, ["-c", f'ulimit -n {FEW_FILES} && exec "$0" "$@"', TROUPE,
                   *self.sft("run.steps=100000", "run.save_every=0")],
            program="/bin/sh")
        self.wait_for_step("sft", 1)
        ports = [port for pid in (process.popen.pid, *self.workers())
                 for port in ports_of(pid)]
        self.assertGreaterEqual(len(ports), 3, "the page, and each worker")
        strangers = contextlib.ExitStack()
        self.addCleanup(strangers.close)
        for port in ports:
            for _ in range(FEW_FILES + 76):
                strangers.enter_context(
                    socket.create_connection(("127.0.0.1", port), 10))
        step = max(self.metrics("sft"))
        self.wait_for_step("sft", step + 2, seconds=20)
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75, process.err)

    def test_the_pages_token_is_in_one_file_for_the_owner_alone(self):
        process = self.start(*self.sft("run.steps=100000", "run.save_every=0"))
        self.wait_for_step("sft", 1)
        folder = self.run_folder("sft")
        secret = folder / ".page_token"
        self.assertEqual(secret.stat().st_mode & 0o777, 0o600)
        token = secret.read_text().strip()
        for file in folder.rglob("*"):
            if file.is_file() and file != secret:
                self.assertNotIn(token.encode(), file.read_bytes(), file)
        url = json.loads(self.troupe("status", "runs/sft", "--json").stdout)[
            "trace_url"]
        self.assertEqual(url.partition("?")[2], f"token={token}")
        with urllib.request.urlopen(url, timeout=20) as answer:
            self.assertEqual(answer.status, 200)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url.partition("?")[0], timeout=20)
        self.assertEqual(refused.exception.code, 403)
        refused.exception.close()
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75, process.err)
        self.assertFalse(secret.exists())

    def wait_for_command(self, process):
        """Returns the worker command that a run prints."""
        return process.wait_for_line(r"waiting for 1 workers: (.+)").group(1)

    def check_waits_unmoved(self, *overrides):
        """A run whose worker is started by hand, and strangers before it."""
        process = self.start(*self.sft(
            "cluster.launcher=manual", "cluster.devices_per_node=1",
            "cluster.workers_per_node=1", *overrides))
        command = self.wait_for_command(process)
        port, pid = self.port_of("sft"), process.popen.pid
        before = resident_bytes(pid)
        strangers = [Stranger(self, port) for _ in range(4)]
        for stranger in strangers:
            with contextlib.suppress(OSError):  # it may have been closed
                stranger.say(MESSAGE, length=HUGE)
                stranger.receive(1)
        self.assertLess(resident_bytes(pid) - before, 50 << 20)
        self.assertFalse(any(stranger.greeted for stranger in strangers))
        # as it was printed, in another folder, with no troupe in the PATH
        worker = subprocess.run(
            ["/bin/sh", "-c", command], cwd="/", capture_output=True, text=True,
            env={**self.environment, "PATH": "/usr/bin:/bin"}, timeout=60)
        self.assertEqual(worker.returncode, 0, worker.stderr)
        self.assertEqual(process.finish().code, 0, process.err)

    def test_a_run_that_waits_allocates_nothing_for_strangers(self):
        self.check_waits_unmoved()

    def test_waiting_strangers_cost_no_memory_without_encryption(self):
        self.check_waits_unmoved("cluster.tls=off")


if __name__ == "__main__":
    unittest.main()
