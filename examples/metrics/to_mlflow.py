#!/usr/bin/env python3
"""Sends the numbers of a run to MLflow, as a `metrics.command`:

    metrics: {command: "python3 examples/metrics/to_mlflow.py EXPERIMENT RUN runs/RUN"}

It reads the lines of metrics.jsonl on its standard input, one JSON object a
step. RUN is the name there; with the run's folder its settings become
parameters. Needs `pip install mlflow` (mlflow-skinny is enough). The numbers go to
MLFLOW_TRACKING_URI: a server, or `file:FOLDER`. Attempts of a run and runs that go
on are one run there."""
import json
import pathlib
import queue
import re
import sys
import threading
import time

OWN_TAG = "troupe.run"  # of runs that are continued
VALUE_CHARACTERS = 6000  # of a parameter; MLflow refuses longer ones

lines = queue.SimpleQueue()  # the run never waits: read while MLflow starts


def read_lines():
    for line in sys.stdin:
        lines.put(line)
    lines.put(None)


def flat(settings, prefix=""):
    """Yields run.seed, models.actor.path, ..."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, str(value)[:VALUE_CHARACTERS]


def open_run(client, experiment, name):
    """The id of the run of this name, which is new if there is none."""
    found = client.get_experiment_by_name(experiment)
    experiment_id = (found.experiment_id if found
                     else client.create_experiment(experiment))
    quoted = (name or "").replace("'", "")
    older = client.search_runs([experiment_id],
                               f"tags.`{OWN_TAG}` = '{quoted}'") if name else []
    if older:
        client.update_run(older[0].info.run_id, status="RUNNING")
        return older[0].info.run_id
    return client.create_run(experiment_id, run_name=name,
                             tags={OWN_TAG: quoted}).info.run_id


def send_settings(client, run_id, folder):
    import yaml  # MLflow needs it itself
    from mlflow.entities import Param

    file = pathlib.Path(folder) / "config.yaml"
    told = client.get_run(run_id).data.params  # a parameter never changes
    new = [Param(key, value) for key, value in
           flat(yaml.safe_load(file.read_text("utf-8"))) if key not in told]
    for begin in range(0, len(new), 100):  # as many as a request may have
        client.log_batch(run_id, params=new[begin:begin + 100])


def main():
    threading.Thread(target=read_lines, daemon=True).start()
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    experiment, name, folder = (*sys.argv[1:4], None, None)[:3]
    client = MlflowClient()
    run_id = open_run(client, experiment, name)
    if folder:
        send_settings(client, run_id, folder)
    for line in iter(lines.get, None):
        numbers, now = json.loads(line), int(time.time() * 1000)
        # names have neither @ nor other signs; null: not finite
        client.log_batch(run_id, [
            Metric(re.sub(r"[^\w\-. /]", "_", key), value, now, numbers["step"])
            for key, value in numbers.items() if value is not None])
    client.set_terminated(run_id)


if __name__ == "__main__":
    main()
