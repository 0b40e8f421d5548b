"""examples/metrics/to_*.py beside the real Weights & Biases and MLflow, offline:
what a run told is read back from what they stored. `make trackers` installs them."""
import json
import os
import pathlib
import struct
import subprocess
import unittest

import package  # noqa: F401
from support import SOURCE, Case

PYTHON = pathlib.Path(os.environ.get(
    "TROUPE_TRACKERS", SOURCE / ".deps/trackers")) / "bin/python"
# the numbers that MLflow stored, as {step: value}, and what it knows of the run
READ_MLFLOW = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient()
experiment = client.get_experiment_by_name(sys.argv[1])
run, = client.search_runs([experiment.experiment_id])
told = {name: {point.step: point.value for point in
               client.get_metric_history(run.info.run_id, name)}
        for name in run.data.metrics}
print(json.dumps({"name": run.info.run_name, "status": run.info.status,
                  "params": run.data.params, "told": told}))
"""
# one JSON object for each record of what wandb stored; its bytes come from here
READ_WANDB = """
import json, sys
from wandb.proto.wandb_internal_pb2 import Record
for line in sys.stdin:
    record = Record()
    record.ParseFromString(bytes.fromhex(line))
    kind = record.WhichOneof("record_type")
    if kind == "history":
        print(json.dumps({".".join(item.nested_key) or item.key:
                          json.loads(item.value_json)
                          for item in record.history.item}))
    elif kind == "run":
        print(json.dumps({"run": record.run.run_id, "project": record.run.project,
                          "config": {item.key: json.loads(item.value_json)
                                     for item in record.run.config.update}}))
    elif kind == "config":
        print(json.dumps({"config": {item.key: json.loads(item.value_json)
                                     for item in record.config.update}}))
"""


def records(file):
    """The records of a .wandb file, which is a log of LevelDB after 7 bytes: blocks
    of 32 KiB; each part has a checksum, its length, and whether it is all of a
    record (1), its first (2), a middle (3) or its last part (4)."""
    stored, at, record = file.read_bytes(), 7, b""
    while at + 7 <= len(stored):
        _, size, kind = struct.unpack_from("<IHB", stored, at)
        if kind:
            record += stored[at + 7:at + 7 + size]
            at += 7 + size
        if kind in (1, 4):
            yield record
            record = b""
        if not kind or 0x8000 - at % 0x8000 < 7:  # padding
            at += 0x8000 - at % 0x8000


@unittest.skipUnless(PYTHON.exists(), "no wandb on this machine: make trackers")
class Trackers(Case):
    def setUp(self):
        super().setUp()
        # their caches and settings go into the test's folder
        self.environment |= {
            "HOME": str(self.folder), "WANDB_MODE": "offline",
            "WANDB_SILENT": "true", "MLFLOW_ALLOW_FILE_STORE": "true",
            "MLFLOW_TRACKING_URI": f"file:{self.folder}/mlruns"}

    def read(self, program, *words, text=None):
        done = subprocess.run([PYTHON, "-c", program, *words], text=True,
                              input=text, cwd=self.folder, env=self.environment,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def run_beside(self, script, *overrides):
        command = f"{PYTHON} {SOURCE}/examples/metrics/{script} pets cats runs/sft"
        done = self.troupe(*self.sft(f"metrics.command={command}", *overrides))
        self.assertNotIn("Traceback", done.stderr)
        self.assertNotIn("metrics.command", done.stderr)

    def test_settings_name_a_tracker_of_each_kind(self):
        self.environment["PATH"] = f"{PYTHON.parent}:{self.environment['PATH']}"
        self.troupe(*self.sft("run.steps=4", "metrics.wandb=pets",
                              "metrics.mlflow=pets"))
        found, = self.read(READ_MLFLOW, "pets")
        self.assertEqual((found["name"], found["status"]), ("sft", "FINISHED"))
        self.assertEqual(found["params"]["metrics.wandb"], "pets")
        self.assert_told(found["told"])
        file, = self.folder.glob("wandb/offline-run-*/run-sft.wandb")
        steps = [record for record in self.read(READ_WANDB, text="\n".join(
            one.hex() for one in records(file))) if "train/loss" in record]
        self.assertEqual([record["step"] for record in steps], [1, 2, 3, 4])

    def assert_told(self, told):
        """{name: {step: number}} is what metrics.jsonl has."""
        lines = self.metrics("sft")
        for name in ("train/loss", "train/lr", "timing_s/step"):
            self.assertEqual({int(step): value for step, value
                              in told[name].items()},
                             {step: line[name] for step, line in lines.items()})

    def test_wandb_stores_every_step_and_the_settings(self):
        self.run_beside("to_wandb.py", "run.steps=12")
        file, = self.folder.glob("wandb/offline-run-*/run-*.wandb")
        found = self.read(READ_WANDB, text="\n".join(
            record.hex() for record in records(file)))
        run = next(record for record in found if "run" in record)
        self.assertEqual((run["run"], run["project"]), ("cats", "pets"))
        config = {}
        for record in found:
            config |= record.get("config", {})
        self.assertEqual(config["models"]["actor"]["path"], "data/base")
        steps = [record for record in found if "train/loss" in record]
        self.assertEqual(len(steps), 12)
        self.assert_told({name: {record["step"]: record[name] for record in steps
                                 if name in record} for name in steps[0]})

    def test_mlflow_stores_every_step_and_the_settings(self):
        self.run_beside("to_mlflow.py", "run.steps=12")
        found, = self.read(READ_MLFLOW, "pets")
        self.assertEqual((found["name"], found["status"]), ("cats", "FINISHED"))
        self.assertEqual(found["params"]["models.actor.path"], "data/base")
        self.assert_told(found["told"])

    def test_a_run_that_goes_on_is_one_run_of_mlflow(self):
        self.run_beside("to_mlflow.py", "run.steps=4")
        self.run_beside("to_mlflow.py", "run.steps=6")
        found, = self.read(READ_MLFLOW, "pets")
        self.assertEqual(found["status"], "FINISHED")
        self.assert_told(found["told"])

    def test_names_that_mlflow_refuses_are_spelled_otherwise(self):
        line = {"step": 1, "val-core/pets/reward/mean@4": 0.5, "lost": None}
        done = subprocess.run(
            [PYTHON, SOURCE / "examples/metrics/to_mlflow.py", "pets"],
            input=json.dumps(line) + "\n", text=True, cwd=self.folder,
            env=self.environment, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        found, = self.read(READ_MLFLOW, "pets")
        self.assertEqual(found["told"], {"step": {"1": 1},
                                         "val-core/pets/reward/mean_4": {"1": 0.5}})


if __name__ == "__main__":
    unittest.main()
