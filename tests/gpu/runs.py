"""Whole runs of PPO on the tiny models, for first light on several GPUs:

    runs.py alike --plans data_parallel,tensor.yaml ..   each trains as one device does (I1 a)
    runs.py kill ..                                      a killed worker costs a restart

    .. --troupe FILE --tiny-data FILE --device gpu|cpu --out DIR

Presets are named; a file is one of examples/tiny/plans. All are for four devices, which
share the GPUs that there are. The last line is a JSON document."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
# pylint: disable=wrong-import-position
from support import TINY, Case, make_scorer, read_rows, until

DEVICES = 4
LOSSES = ("actor/pg_loss", "critic/vf_loss", "actor/ppo_kl")
NORMS = ("actor/grad_norm", "critic/grad_norm")
ROLES = ("actor", "critic", "ref", "reward")
STEPS_OF_KILL, KILLED_AFTER = 12, 3


class Runs:
    def __init__(self, asked):
        self.troupe, self.folder = asked.troupe, asked.out / f"runs_{asked.verb}"
        self.device = asked.device
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        subprocess.run([asked.tiny_data, "--out", self.folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        make_scorer(self.folder / "data/base", self.folder / "data/scorer")

    def command(self, name, devices, *overrides):
        """fp32, whose sums may be held against each other."""
        return [str(word) for word in (
            self.troupe, *Case.ppo(None), f"run.name={name}", "run.resume=fresh",
            f"cluster.device={self.device}", f"cluster.devices_per_node={devices}",
            f"cluster.workers_per_node={1 if devices == 1 else 2}", "run.check_moves=true",
            "trace.enabled=false", *(f"models.{role}.dtype=fp32" for role in ROLES),
            *overrides)]

    def train(self, name, devices, *overrides):
        """{step: metrics}; what it says goes to ours if it fails."""
        done = subprocess.run(self.command(name, devices, *overrides), cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0:
            raise SystemExit(f"{name} ended with {done.returncode}\n{done.stdout}")
        return self.metrics(name)

    def metrics(self, name):
        file = self.folder / "runs" / name / "metrics.jsonl"
        return {row["step"]: row for row in read_rows(file)} if file.is_file() else {}


def furthest(alone, found):
    """The largest difference of a loss or norm, relative to its size but losses at most to 1."""
    apart = [0.0]
    for step, line in alone.items():
        for key in LOSSES:
            apart.append(abs(line[key] - found[step][key]) / max(abs(line[key]), 1.0))
        for key in NORMS:
            apart.append(abs(line[key] - found[step][key]) / abs(line[key]))
    return max(apart)


def alike(runs, plans):
    alone = runs.train("alone", 1, "plan=single")
    replay = f"run.replay={runs.folder}/runs/alone/samples.jsonl"
    found = {}
    for plan in plans:
        written = TINY / "plans" / plan if plan.endswith(".yaml") else plan
        lines = runs.train("run", DEVICES, f"plan={written}", replay)
        found[plan] = furthest(alone, lines)
        print(f"{plan}: at most {found[plan]:.3g} from one device", flush=True)
    return {"plans": found, "worst": max(found.values())}


def kill(runs):
    words = runs.command("killed", DEVICES, f"run.steps={STEPS_OF_KILL}", "run.save_every=2")
    folder = runs.folder / "runs/killed"
    with open(runs.folder / "killed.log", "w", encoding="utf-8") as said:
        process = subprocess.Popen(words, cwd=runs.folder, stdout=said,
                                   stderr=subprocess.STDOUT)
        until(lambda: process.poll() is not None
              or max(runs.metrics("killed"), default=0) >= KILLED_AFTER,
              f"step {KILLED_AFTER}", 60)
        workers = json.loads((folder / "status.json").read_text())["workers"]
        os.kill(workers[-1]["pid"], signal.SIGKILL)
        code = process.wait()
    if code != 0:
        raise SystemExit(f"ended with {code}\n{(runs.folder / 'killed.log').read_text()}")
    last = runs.metrics("killed")[STEPS_OF_KILL]
    return {"restarts": last["training/restarts"], "lost_steps": last["training/lost_steps"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("alike", "kill"))
    parser.add_argument("--plans", default="data_parallel")
    parser.add_argument("--troupe", type=pathlib.Path, required=True)
    parser.add_argument("--tiny-data", type=pathlib.Path, required=True)
    parser.add_argument("--device", choices=("cpu", "gpu"), required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    asked = parser.parse_args()
    asked.out = asked.out.resolve()
    runs = Runs(asked)
    found = alike(runs, asked.plans.split(",")) if asked.verb == "alike" else kill(runs)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
