"""master_memory.py [--minutes 60] [--rate 5000] [--limit-mb 500] [--out FILE]

The master of a real run while RATE events a second go through it to a page:
the run's own steps, one a second, and a process beside it that writes traces as
a busy worker would. Another page is opened every minute and closed again.
Fails where the master's resident memory passes the limit, does not stay flat,
or the page gets fewer events than were written. Low priority is enough."""
import argparse
import array
import json
import os
import pathlib
import signal
import socket
import statistics
import struct
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import trace_files  # noqa: E402
from support import Case, until  # noqa: E402

PERIOD_NS = 50_000_000  # of a process's drainer
SAMPLE_S = 10
RELOAD_S = 60
FLAT_MB = 48            # from the first tenth of the time to the last one
SLOW_SCORER = """
import json, sys, time
for line in sys.stdin:
    row = json.loads(line)
    if row["id"] % 24 == 0:
        time.sleep(0.9)
    print(json.dumps({"id": row["id"], "score": row["id"] % 3}), flush=True)
"""


class Watcher:
    """A page's connection: reads what comes and counts events."""

    def __init__(self, url):
        host, port = url.split("/")[2].split(":")
        token = url.partition("?")[2]
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.sendall((
            f"GET /events?{token} HTTP/1.1\r\n"
            f"Host: {host}:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dHJvdXBlIHRyb3VwZSB0cg==\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        while self.stream.readline() not in (b"\r\n", b""):
            pass
        self.events = 0
        self.begun = set()  # files whose magic came

    def read(self):
        """One message; False: the connection ended."""
        head = self.stream.read(2)
        if len(head) < 2 or head[0] & 15 == 8:
            return False
        size = head[1] & 127
        if size > 125:
            size = int.from_bytes(self.stream.read(2 if size == 126 else 8),
                                  "big")
        payload = self.stream.read(size)
        if head[0] & 15 == 2:
            self.count(payload)
        return True

    def count(self, payload):
        number, at = struct.unpack_from("<I", payload)[0], 4
        if number not in self.begun:
            self.begun.add(number)
            at += 8
        while at + 8 <= len(payload):
            kind, size = struct.unpack_from("<II", payload, at)
            if kind == 4:
                self.events += size // trace_files.EVENT.size
            at += 8 + size

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.stream.close()
        self.socket.close()


def resident_mb(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


class MasterMemory(Case):
    options = None

    def paced_run(self):
        """A run that makes about a step a second, its page's address."""
        scorer = self.folder / "scorer.py"
        scorer.write_text(SLOW_SCORER)
        process = self.start(
            "train", "/dev/null", "workflow=grpo", "run.name=paced",
            "run.steps=1000000", "run.save_every=500", "run.keep=1",
            "models.actor.path=data/base", "plan=data_parallel",
            "models.actor.optimizer.lr=1e-5", "cluster.devices_per_node=2",
            "cluster.workers_per_node=2", "data.train=data/prompts.jsonl",
            "data.batch_size=6", "data.max_prompt_tokens=32", "rollout.n=4",
            "rollout.max_new_tokens=8", "algorithm.mini_batches=1",
            "reward.kind=process", f"reward.command={sys.executable} {scorer}",
            "reward.workers=1", "metrics.console=false")  # nobody reads it
        self.wait_for_step("paced", 2)
        status = self.troupe("status", "runs/paced", "--json").stdout
        return process, json.loads(status)["trace_url"]

    def write_events(self, end):
        """Messages between two actors and what they do, at the rate wanted."""
        file = trace_files.TraceFile(self.run_folder("paced") / "trace",
                                     "worker 9", 9)
        tracks = [file.track(name) for name in ("call busy", "shard busy")]
        name, flow = file.name("note"), 1 << 50
        begin = time.monotonic_ns()
        while not end.wait(max(0, begin - time.monotonic_ns()) / 1e9):
            batch = array.array("B")
            times = range(begin - PERIOD_NS, begin,
                          4 * 10**9 // self.options.rate)
            for at in times:
                flow += 1
                for after, (kind, track) in enumerate((
                        (trace_files.SEND, 0), (trace_files.BEGIN, 1),
                        (trace_files.RECEIVE, 1), (trace_files.END, 1))):
                    batch.frombytes(file.event(
                        kind, at + 20_000 * after, tracks[track], name, 0, flow))
            file.events([batch.tobytes()])
            self.written += 4 * len(times)
            begin += PERIOD_NS
        file.close()

    def visit(self, url, end):
        """Somebody opens the page every minute and leaves it again."""
        while not end.wait(RELOAD_S):
            watcher = Watcher(url)
            for _ in range(50):
                watcher.read()
            watcher.close()

    def sample(self, process, log):
        """The master's resident MB over the time wanted."""
        begin, curve = time.monotonic(), []
        while time.monotonic() - begin < self.options.minutes * 60:
            time.sleep(SAMPLE_S)
            if process.popen.poll() is not None:
                self.fail("the run ended: " + (
                    self.run_folder("paced") / "failures.jsonl").read_text())
            line = {"s": round(time.monotonic() - begin, 1),
                    "master_mb": round(resident_mb(process.popen.pid), 1),
                    "workers_mb": [round(resident_mb(worker), 1)
                                   for worker in self.workers()],
                    "written": self.written, "shown": self.page.events}
            curve.append(line)
            log.write(json.dumps(line) + "\n")
            log.flush()
            self.assertLess(line["master_mb"], self.options.limit_mb)
        return curve

    def test_the_master_stays_small(self):
        process, url = self.paced_run()
        end, self.written = threading.Event(), 0
        self.page = Watcher(url)
        threads = [threading.Thread(target=target, args=arguments, daemon=True)
                   for target, arguments in (
                       (self.write_events, (end,)), (self.visit, (url, end)),
                       (self.read_all, ()))]
        for thread in threads:
            thread.start()
        with open(self.options.out, "w", encoding="utf-8") as log:
            curve = self.sample(process, log)
        end.set()
        threads[0].join()
        until(lambda: self.page.events >= self.written, "the page has all")
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 75)
        self.judge(curve)

    def read_all(self):
        while self.page.read():
            pass

    def judge(self, curve):
        tenth = max(1, len(curve) // 10)
        memory = [line["master_mb"] for line in curve]
        first = statistics.median(memory[tenth:2 * tenth] or memory)
        last = statistics.median(memory[-tenth:])
        rate = self.page.events / curve[-1]["s"]
        print(f"{curve[-1]['s'] / 60:.1f} minutes, {rate:.0f} events/s to the "
              f"page, {max(self.metrics('paced'))} steps: master {first:.1f} "
              f"-> {last:.1f} MB, at most {max(memory):.1f} MB")
        self.assertGreater(rate, 0.95 * self.options.rate)
        self.assertLess(last - first, FLAT_MB)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--limit-mb", type=float, default=500)
    parser.add_argument("--out", default="master_memory.jsonl")
    MasterMemory.options = parser.parse_args()
    unittest.main(argv=sys.argv[:1])
