#!/usr/bin/env python3
"""Sends the numbers of a run to Weights & Biases, as a `metrics.command`:

    metrics: {command: "python3 examples/metrics/to_wandb.py PROJECT RUN runs/RUN"}

It reads the lines of metrics.jsonl on its standard input, one JSON object a
step. RUN is the name there; with the run's folder its settings are sent, too.
Needs `pip install wandb` and `wandb login` (or cluster.env: {WANDB_API_KEY:
$WANDB_API_KEY}); WANDB_MODE=offline keeps the numbers in ./wandb, for `wandb
sync`. Attempts of a run and runs that go on are one run there."""
import json
import pathlib
import queue
import re
import sys
import threading

lines = queue.SimpleQueue()  # the run never waits: read while wandb starts


def read_lines():
    for line in sys.stdin:
        lines.put(line)
    lines.put(None)


def send_settings(run, folder):
    import yaml  # wandb needs it itself

    file = pathlib.Path(folder) / "config.yaml"
    run.config.update(yaml.safe_load(file.read_text("utf-8")),
                      allow_val_change=True)


def main():
    threading.Thread(target=read_lines, daemon=True).start()
    import wandb

    project, name, folder = (*sys.argv[1:4], None, None)[:3]
    # some characters are not allowed in the id of a run
    own_id = re.sub(r"[/\\#?%:]", "-", name) if name else None
    run = wandb.init(project=project, name=name, id=own_id, resume="allow")
    if folder:
        send_settings(run, folder)
    # a step may be told again: after a resume, or with its evaluation
    run.define_metric("*", step_metric="step")
    for line in iter(lines.get, None):
        numbers = json.loads(line)
        run.log({key: value for key, value in numbers.items()
                 if value is not None})  # null: not finite
    run.finish()


if __name__ == "__main__":
    main()
