#!/usr/bin/env python3
"""First light (docs/gpu_tests.md) on pretended GPUs: every step with small models, on the
device and by the branches that a real GPU would see.

    TROUPE_BUILD=build tests/soak/first_light.py"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from support import BUILD, SOURCE  # noqa: E402 (its folder is above)

STANDIN = SOURCE / "tests/gpu/standin.sh"
PROGRAMS = BUILD / "tests/gpu/standin"
LIMIT_S = 900
PATIENCE = 20  # kernels are loops of the host
# of tests that `standin.models` runs whole: here it is what a step makes of them
A_PART = {"GTEST_TOTAL_SHARDS": "8", "GTEST_SHARD_INDEX": "0"}
# what pretended GPUs cannot have
ELSEWHERE = re.compile(r"no (compute-sanitizer|gpu_kernels_test|all_reduce_perf) on this machine|"
                       r"no (trl|vllm) in this Python")
# an illegal call, not one of a library's kernels that the CPU computes in its place
ILLEGAL = re.compile(r"standin: (?!\w+ is not served)")
DRIVER = """#!/bin/sh
case "$*" in
*query-gpu=name*) line="stand-in for an H100" ;;
*query-gpu=memory*) line=16384 ;;
*query-gpu*) line=580.1 ;;
*) exit 0 ;;
esac
i=0
while [ $i -lt {gpus} ]; do echo "$line"; i=$((i + 1)); done
"""


def why_not():
    """Why there are no pretended GPUs here; empty: there are."""
    if not (PROGRAMS / "troupe-bench").exists():
        return "no standin_bench on this machine"
    found = subprocess.run([STANDIN, "--", "true"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    return found.strip().removeprefix("skipped: ")


class FirstLight(unittest.TestCase):
    def setUp(self):
        if reason := why_not():
            self.skipTest(reason)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def steps(self, gpus):
        """{name: step} of a run on so many GPUs."""
        driver = self.folder / "nvidia-smi"
        driver.write_text(DRIVER.format(gpus=gpus))
        driver.chmod(0o755)
        out = self.folder / "out"
        done = subprocess.run(
            [STANDIN, "--gpus", str(gpus), "--seed", "1", "--", sys.executable, "-B",
             SOURCE / "tests/gpu/first_light.py", "--build", PROGRAMS, "--out", out, "--small",
             "--gpus", str(gpus), "--patience", str(PATIENCE), "--minutes", "60",
             "--keep-going"],
            env={**os.environ, **A_PART, "PATH": f"{self.folder}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S,
            check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        for log in out.glob("*.log"):
            self.assertNotRegex(log.read_text(), ILLEGAL, log.name)
        document = json.loads((out / "first_light.json").read_text())
        for step in document["steps"]:
            if step["state"] == "skipped":
                self.assertRegex(step["why"], ELSEWHERE, step["name"])
            else:
                self.assertEqual(step["state"], "green", f"{step}\n{done.stdout}")
        return {step["name"]: step for step in document["steps"]}

    def test_one_gpu_answers_every_step(self):
        steps = self.steps(1)
        for name, step in steps.items():
            if "a token" in name or "train" in name and "two devices" not in name \
                    or "whole iteration" in name:
                if "CPU" not in name:
                    self.assertGreater(step["numbers"]["predicted"], 0, name)

    def test_two_gpus_answer_every_step(self):
        steps = self.steps(2)
        sums = steps["collectives of 1 GiB"]["numbers"]
        self.assertEqual((sums["ranks"], sums["nccl"]), (2, 1))
        self.assertEqual(steps["weights between two hosts over NCCL"]["numbers"]["nccl_moves"], 2)


if __name__ == "__main__":
    unittest.main()
