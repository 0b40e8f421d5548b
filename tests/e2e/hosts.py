"""Hosts of a test on one machine: network namespaces with an address each, and a
switch of this process between them that delays, loses and cuts. A namespace
lives as long as its keeper, a process that reads from this one, so nothing is
left over when a test dies. The kernel's netem would do the same; many kernels
have none."""
import contextlib
import fcntl
import heapq
import os
import random
import selectors
import shutil
import struct
import subprocess
import threading
import time

from support import until

TUNSETIFF = 0x400454CA
IFF_TAP_NO_PI = 0x0002 | 0x1000
FRAME_BYTES = 1 << 16
NETWORK = "10.77.215"


def command(*words):
    return subprocess.run(words, check=True, capture_output=True,
                          text=True).stdout


def open_tap(name):
    """The far end of a new network card: what it sends can be read here."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(),
                                            IFF_TAP_NO_PI))
    return tap


def missing():
    """Why this machine cannot have several hosts, or nothing."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("ip", "nsenter", "unshare"):
        if shutil.which(program) is None:
            return f"no {program} on this machine"
    try:
        os.close(open_tap(f"tr{os.getpid() % 100000}p"))
        command("unshare", "--net", "--mount", "true")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no /dev/net/tun on this machine, or no namespaces: {error}"
    return ""


class Host:
    """A network namespace and a mount namespace of its own."""

    def __init__(self, number):
        self.name, self.address = f"h{number}", f"{NETWORK}.{number + 1}"
        self.keeper = subprocess.Popen(
            ["unshare", "--net", "--mount", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True)
        self.keeper.stdout.readline()  # it is in its namespaces
        card = f"tr{os.getpid() % 100000}h{number}"
        self.tap = open_tap(card)
        command("ip", "link", "set", card, "netns", str(self.keeper.pid))
        self.run("ip", "link", "set", card, "name", "eth0")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self.run("ip", "link", "set", "lo", "up")

    def words(self, *words, folder="/"):
        """The command that runs `words` in a folder of this host."""
        return ["nsenter", "--target", str(self.keeper.pid), "--net", "--mount",
                "sh", "-c", 'cd "$0" && exec "$@"', str(folder),
                *map(str, words)]

    def run(self, *words):
        command(*self.words(*words))

    def output(self, *words):
        return command(*self.words(*words))

    def link(self, state):
        self.run("ip", "link", "set", "eth0", state)

    def hide(self, folder):
        """An empty folder in the place of `folder`: a disk of its own."""
        self.run("mount", "-t", "tmpfs", "none", str(folder))

    def having(self, pids):
        """Those of the processes that are on this host."""
        space = os.stat(f"/proc/{self.keeper.pid}/ns/net").st_ino
        found = []
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended
                if os.stat(f"/proc/{pid}/ns/net").st_ino == space:
                    found.append(pid)
        return found

    def close(self):
        self.keeper.stdin.close()
        self.keeper.wait()
        self.keeper.stdout.close()
        os.close(self.tap)


class Switch(threading.Thread):
    """Passes frames on between the hosts, `delay_s` later, but for a share of
    `loss`, drawn by a seed, and all between two hosts that are cut apart."""

    def __init__(self, hosts, delay_s, loss):
        super().__init__(daemon=True)
        self.hosts, self.delay_s, self.loss = hosts, delay_s, loss
        self.random = random.Random(1)
        self.apart = set()      # pairs of hosts
        self.port_of = {}       # network address of a card: its host
        self.late = []          # (when, order, tap, frame)
        self.frames, self.lost, self.ending = 0, 0, False

    def cut(self, *pairs):
        self.apart = {frozenset(pair) for pair in pairs}

    def run(self):
        with selectors.DefaultSelector() as ready:
            for host in self.hosts:
                ready.register(host.tap, selectors.EVENT_READ, host)
            while not self.ending:
                wait = self.late[0][0] - time.monotonic() if self.late else 0.05
                for key, _ in ready.select(max(0, min(wait, 0.05))):
                    self.take(key.data)
                self.deliver()

    def take(self, source):
        with contextlib.suppress(BlockingIOError):
            while True:
                frame = os.read(source.tap, FRAME_BYTES)
                self.port_of[frame[6:12]] = source
                known = self.port_of.get(frame[:6])
                for target in [known] if known else self.hosts:
                    if target is not source:
                        self.send(source, target, frame)

    def send(self, source, target, frame):
        self.frames += 1
        if frozenset((source, target)) in self.apart:
            return
        if self.random.random() < self.loss:
            self.lost += 1
            return
        heapq.heappush(self.late, (time.monotonic() + self.delay_s, self.frames,
                                   target.tap, frame))

    def deliver(self):
        while self.late and self.late[0][0] <= time.monotonic():
            _, _, tap, frame = heapq.heappop(self.late)
            with contextlib.suppress(OSError):  # the card is down
                os.write(tap, frame)

    def close(self):
        self.ending = True
        self.join()


class Network:
    """Several hosts and the switch between them."""

    def __init__(self, num_hosts, delay_s=0.0, loss=0.0):
        self.hosts = [Host(number) for number in range(num_hosts)]
        self.switch = Switch(self.hosts, delay_s, loss)
        self.switch.start()

    def write_ssh(self, file):
        """A program in the place of ssh: enters the host that it is told, if a
        packet reaches it from where it runs. What it starts there outlives it,
        as it does over ssh."""
        cases = "".join(f"{host.address}) pid={host.keeper.pid};; "
                        for host in self.hosts)
        file.write_text(f"""#!/bin/sh
[ "$1 $2" = "-o BatchMode=yes" ] || exit 255
case "$3" in {cases}*) echo "ssh: no host $3" >&2; exit 255;; esac
# a name server's port that nobody has: refused at once, or no answer
python3 - "$3" <<'END' || {{ echo "ssh: no route to $3" >&2; exit 255; }}
import socket, sys
try:
    socket.create_connection((sys.argv[1], 53), timeout=3)
except ConnectionRefusedError:
    pass
except OSError:
    sys.exit(1)
END
exec 3<&0
setsid nsenter --target $pid --net --mount sh -c "cd / && $4" <&3 &
wait $!
""")
        file.chmod(0o755)

    def close(self):
        self.switch.close()
        for host in self.hosts:
            host.close()


__all__ = ["Host", "Network", "Switch", "missing", "until"]
