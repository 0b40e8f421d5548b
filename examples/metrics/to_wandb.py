#!/usr/bin/env python3
"""Sends the numbers of a run to Weights & Biases, as a `metrics.command`:

    metrics: {command: "python3 examples/metrics/to_wandb.py PROJECT RUN"}

It reads the lines of metrics.jsonl on its standard input, one JSON object a
step. Needs `pip install wandb` and `wandb login` (or
cluster.env: {WANDB_API_KEY: $WANDB_API_KEY}); WANDB_MODE=offline keeps the
numbers in ./wandb. The same program with another library in it serves any other
service."""
import json
import sys

import wandb


def main():
    project, name = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    # one run there for all attempts of a run here
    run = wandb.init(project=project, name=name, id=name, resume="allow")
    # a step may be told again: after a resume, or with its evaluation
    run.define_metric("*", step_metric="step")
    for line in sys.stdin:
        run.log(json.loads(line))
    run.finish()


if __name__ == "__main__":
    main()
