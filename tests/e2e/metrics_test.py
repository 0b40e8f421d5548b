"""Numbers of a run that need more than its losses: idle time by reason, what a
measured machine predicts, the newest ones for Prometheus and a terminal."""
import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from support import SOURCE, TROUPE, Case, until

REASONS = ("dependency", "bytes", "device", "version")


class Metrics(Case):
    def test_idle_shares_by_reason_sum_to_the_idle_share(self):
        self.troupe(*self.ppo())
        for line in self.metrics("ppo").values():
            parts = [line["perf/idle/" + reason] for reason in REASONS]
            self.assertAlmostEqual(sum(parts), line["perf/idle_ratio"], 6)
            self.assertGreaterEqual(min(parts), 0)
        # scoring and training on other devices than generation: rows travel
        self.assertGreater(line["perf/idle/bytes"], 0)
        self.assertGreater(line["perf/idle/dependency"], 0)

    def test_a_measured_machine_predicts_steps_and_its_use(self):
        self.troupe(*self.ppo())
        for line in self.metrics("ppo").values():
            self.assertGreater(line["perf/predicted_step_s"], 1e-3)
            self.assertLess(line["perf/predicted_step_s"], 60)
            for role in ("actor", "critic"):
                self.assertGreater(line[f"perf/mfu/{role}"], 0)
                self.assertLess(line[f"perf/mfu/{role}"], 2)

    def test_an_unmeasured_machine_predicts_nothing(self):
        self.environment["XDG_CACHE_HOME"] = str(self.folder / "none")
        self.troupe(*self.ppo("run.steps=1"))
        names = self.metrics("ppo")[1]
        self.assertFalse([name for name in names
                          if name.startswith(("perf/mfu", "perf/predicted"))])

    def test_a_broken_profile_is_logged_and_stops_no_run(self):
        self.cached_profile("device: {gem_flops: 1}\n")
        self.troupe(*self.sft("run.steps=1"))
        log = (self.run_folder("sft") / "log.txt").read_text()
        self.assertIn("device.gem_flops", log)

    def test_skipped_optimizer_steps_are_reported_once(self):
        done = self.troupe(*self.sft(
            "run.steps=4", "models.actor.optimizer.lr=1e30",
            "models.actor.optimizer.warmup=0"))
        self.assertGreater(self.metrics("sft")[4]["train/skipped_steps"], 0)
        self.assertEqual(done.stderr.count("optimizer steps skipped"), 1,
                         done.stderr)
        self.assertIn("train/skipped_steps counts them", done.stderr)

    def test_the_recipe_for_wandb_sends_every_step(self):
        # a fake of the library: keeps its arguments
        (self.folder / "wandb.py").write_text("""
import json
def init(**words):
    return Run(words)
class Run:
    def __init__(self, words):
        self.told = [words]
    def define_metric(self, name, step_metric):
        self.told.append({"x": step_metric})
    def log(self, values):
        self.told.append(values)
    def finish(self):
        open("told.json", "w").write(json.dumps(self.told))
""")
        self.environment["PYTHONPATH"] = str(self.folder)
        recipe = SOURCE / "examples/metrics/to_wandb.py"
        self.troupe(*self.sft(
            "run.steps=3", f"metrics.command=python3 {recipe} pets cats"))
        start, axis, *steps = json.loads(
            (self.folder / "told.json").read_text())
        self.assertEqual((start["project"], start["name"]), ("pets", "cats"))
        self.assertEqual(axis, {"x": "step"})
        self.assertEqual([line["step"] for line in steps], [1, 2, 3])
        self.assertGreater(steps[0]["train/loss"], 0)

    @staticmethod
    def free_port():
        with socket.socket() as any_port:
            any_port.bind(("127.0.0.1", 0))
            return any_port.getsockname()[1]

    @staticmethod
    def scrape(port, path="/metrics"):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}",
                                        timeout=10) as answer:
                return answer.read().decode()
        return ""

    def test_prometheus_scrapes_a_run_under_way(self):
        port = self.free_port()
        run = self.start(*self.ppo("run.steps=500", "run.save_every=500",
                                   f"metrics.prometheus={port}"))
        text = until(lambda: (found := self.scrape(port))
                     and "troupe_step{" in found and found, "a scraped step")
        numbers = dict(line.rsplit(" ", 1) for line in text.splitlines()
                       if not line.startswith("#"))
        self.assertEqual(numbers['troupe_workers{run="ppo",state="ready"}'], "2")
        self.assertEqual(numbers['troupe_failures_total{run="ppo"}'], "0")
        step = int(numbers['troupe_step{run="ppo"}'])
        line = self.metrics("ppo")[step]
        for name in ("actor/pg_loss", "timing_s/gen", "critic/score/mean",
                     "perf/idle/bytes"):
            label = f'troupe_{re.sub("[^a-z0-9]", "_", name)}{{run="ppo"}}'
            self.assertAlmostEqual(float(numbers[label]), line[name])
        with self.assertRaises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other")
        run.send(signal.SIGINT)
        self.assertEqual(run.finish().code, 130)
        self.assertEqual(self.scrape(port), "")

    def test_a_prometheus_port_in_use_is_one_line(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = self.troupe(*self.sft(f"metrics.prometheus={port}"), code=1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(f"127.0.0.1:{port}", done.stderr)

    def test_a_run_goes_on_while_nobody_reads_what_it_says(self):
        read, write = os.pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        with subprocess.Popen(
                [TROUPE, *map(str, self.sft("run.steps=150", "run.save_every=0"))],
                cwd=self.folder, env=self.environment, stdout=write,
                stderr=write) as process:
            os.close(write)
            self.assertEqual(process.wait(60), 0)
        self.assertEqual(max(self.metrics("sft")), 150)
        with open(read, encoding="utf-8") as said:
            text = said.read()
        self.assertIn("step 1/150", text)
        self.assertNotIn("step 150/150", text)  # there was no room for it

    def test_trace_top_shows_a_run_under_way(self):
        run = self.start(*self.ppo("run.steps=500", "run.save_every=500"))
        self.wait_for_step("ppo", 2)
        top = json.loads(self.troupe("trace", "top", "runs/ppo",
                                     "--json").stdout)
        self.assertEqual(top["state"], "running")
        names = [device["device"] for device in top["devices"]]
        self.assertEqual(names[:4], [f"device {rank}" for rank in range(4)])
        self.assertTrue(any(device["busy_share"] > 0.05
                            for device in top["devices"]))
        self.assertGreaterEqual(len(top["slowest"]), 3)
        text = self.troupe("trace", "top", "runs/ppo").stdout
        self.assertIn("device 3", text)
        self.assertIn("slowest message", text)
        run.send(signal.SIGINT)
        self.assertEqual(run.finish().code, 130)


if __name__ == "__main__":
    unittest.main()
