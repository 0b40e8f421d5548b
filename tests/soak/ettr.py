#!/usr/bin/env python3
"""Kills a worker of a PPO run every so many seconds and prints the ETTR: the
share of wall time that was spent in steps which survived (Kokolis et al.,
"Revisiting Reliability in Large-Scale Machine Learning Research Clusters",
2024). Exits with 1 below the limit, or if the run ended.

    TROUPE_BUILD=build tests/soak/ettr.py [--seconds 1800] [--every 20] [--spares 0]
"""
import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from support import Case, read_rows  # noqa: E402 (its folder is above)

LEAST = 0.8


class Run(Case):
    """The fixtures of end-to-end tests, for a run of hours."""

    def runTest(self):
        """unittest wants a name."""


def kill_until(run, process, end, every_s):
    """Kills workers until `end`; returns how many there were."""
    killed = 0
    while time.monotonic() < end:
        time.sleep(min(every_s, max(0.0, end - time.monotonic())))
        if process.popen.poll() is not None:
            raise SystemExit(f"the run ended: {process.finish().err}")
        workers = run.workers()
        if workers and time.monotonic() < end:
            os.kill(random.choice(workers), signal.SIGKILL)
            killed += 1
    return killed


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=1800)
    options.add_argument("--every", type=float, default=20)
    options.add_argument("--spares", type=int, default=0)
    given = options.parse_args()
    Run.setUpClass()
    run = Run()
    run.setUp()
    try:
        process = run.start(*run.ppo(
            "run.steps=1000000", "run.save_every=50",
            "cluster.max_restarts=1000000", f"cluster.spares={given.spares}"))
        run.wait_for_step("ppo", 1)
        begin = time.monotonic()
        first = max(run.metrics("ppo"))
        killed = kill_until(run, process, begin + given.seconds, given.every)
        wall_s = time.monotonic() - begin
        steps = [line["timing_s/step"]
                 for step, line in run.metrics("ppo").items() if step > first]
        process.send(signal.SIGTERM)
        process.finish()
        failures = read_rows(run.run_folder("ppo") / "failures.jsonl")
    finally:
        run.tearDown()
        Run.tearDownClass()
    ettr = sum(steps) / wall_s
    seconds = [row.get("seconds", 0) for row in failures]
    recovery_s = sum(seconds)
    print(json.dumps({
        "seconds": round(wall_s), "kills": killed, "steps": len(steps),
        "recoveries": len(failures), "ettr": round(ettr, 3),
        "lost_steps": sum(row.get("lost_steps", 0) for row in failures),
        # where the rest went: starting again; then steps that were cut short
        "recovery_share": round(recovery_s / wall_s, 3),
        "rest_share": round(1 - ettr - recovery_s / wall_s, 3),
        "recovery_s_median": round(statistics.median(seconds or [0]), 3),
        "recovery_s_max": round(max(seconds, default=0), 3)}))
    return 0 if ettr >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
