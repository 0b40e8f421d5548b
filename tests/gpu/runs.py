"""Whole runs of PPO on the tiny models, for first light on several GPUs:

    runs.py alike --plans data_parallel,tensor ..   each trains as one device does (I1 a)
    runs.py hosts ..                                two workers that count as hosts: weights
                                                    move between them over NCCL
    runs.py kill ..                                 a killed worker costs a restart

    .. --troupe FILE --tiny-data FILE --device gpu|cpu --gpus N --out DIR

Plans of examples/tiny/plans are for four devices; with fewer GPUs there are some for two.
Presets take the largest power of two of the GPUs. On GPUs a run whose numbers went through
the host, or whose kernels of decoding ran one by one, has failed. The last line is a JSON
document."""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
# pylint: disable=wrong-import-position
from support import TINY, Case, make_scorer, read_rows, until

LOSSES = ("actor/pg_loss", "critic/vf_loss", "actor/ppo_kl")
NORMS = ("actor/grad_norm", "critic/grad_norm")
ROLES = ("actor", "critic", "ref", "reward")
STEPS_OF_KILL, KILLED_AFTER, KILLED_WITHIN_S = 12, 3, 75
SLOWER = re.compile(r".*(?:go through the host|no CUDA graphs).*")
# strategies of generation, of the three that score, of both trainings
OF_TWO = {
    "sharded": ("t2", "d2z3", "d2z3", "d2", "d2z3", "d2z3"),
    "tensor": ("t2", "t2", "t2s", "t2", "d2z1", "t2"),
    "pipeline": ("d2", "p2", "p2", "p2", "p2", "d2z1"),
}
CALLS = ("actor_gen", "rew_inf", "ref_inf", "critic_inf", "actor_train", "critic_train")
# what generates is on the second host, what trains the actor on the first
APART = {
    1: ("1, d1", "0, d1", "0, d1", "1, d1", "0, d1", "1, d1"),
    2: ("2-3, p2", "0, d1", "1, d1", "3, d1", "0-1, t2", "3, d1"),
}


def plan_text(cluster, places):
    """A plan file; `places`: "DEVICES, STRATEGY" of each of CALLS."""
    calls = [f"  {call}: {{devices: {devices}, strategy: {strategy}}}" for call, (devices, strategy)
             in zip(CALLS, (place.split(", ") for place in places))]
    return "\n".join([f"cluster: {cluster}", "calls:", *calls,
                      "  advantages: {devices: host}"]) + "\n"


class Runs:
    def __init__(self, asked):
        self.troupe, self.folder = asked.troupe, asked.out / f"runs_{asked.verb}"
        self.device, self.gpus = asked.device, asked.gpus
        self.preset_devices = 1 << min(3, self.gpus.bit_length() - 1)
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
            "algorithm.mini_batches=2", "trace.enabled=false",
            *(f"models.{role}.dtype=fp32" for role in ROLES), *overrides)]

    def train(self, name, devices, *overrides, environment=None):
        """{step: metrics}; what it says goes to ours if it fails."""
        done = subprocess.run(self.command(name, devices, *overrides), cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{name} ended with {done.returncode}\n{done.stdout}")
        self.refuse_slower(name)
        return self.metrics(name)

    def refuse_slower(self, name):
        """What falls back to the host is right and slow: only logs say it."""
        if self.device != "gpu":
            return
        for log in sorted((self.folder / "runs" / name / "logs").glob("*.log")):
            if found := SLOWER.search(log.read_text(errors="replace")):
                raise SystemExit(f"{name}, {log.name}: {found[0]}")

    def plan_file(self, name, text):
        file = self.folder / f"{name}.yaml"
        file.write_text(text)
        return file

    def of_plan(self, plan):
        """(devices, file or preset) for these GPUs."""
        if plan not in OF_TWO:
            return self.preset_devices, plan
        if self.gpus >= 4:
            return 4, TINY / f"plans/{plan}.yaml"
        places = [f"0-1, {strategy}" for strategy in OF_TWO[plan]]
        return 2, self.plan_file(plan, plan_text(
            "{nodes: 1, devices_per_node: 2, workers_per_node: 2}", places))

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


def alone(runs):
    """A run on one device, and the setting that makes others train on its samples."""
    return runs.train("alone", 1, "plan=single"), \
        f"run.replay={runs.folder}/runs/alone/samples.jsonl"


def alike(runs, plans):
    wanted, replay = alone(runs)
    found = {}
    for plan in plans:
        devices, written = runs.of_plan(plan)
        lines = runs.train(f"by_{plan}", devices, f"plan={written}", replay)
        found[plan] = furthest(wanted, lines)
        print(f"{plan} on {devices}: at most {found[plan]:.3g} from one device", flush=True)
    return {"plans": found, "worst": max(found.values())}


def ssh_between_gpus(runs, devices):
    """A folder with an `ssh` that starts commands here, with GPUs of their own for each of
    the hosts 127.0.0.1 and 127.0.0.2."""
    folder = runs.folder / "bin"
    folder.mkdir()
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    visible = given.split(",") if given else [str(gpu) for gpu in range(runs.gpus)]
    ssh = folder / "ssh"
    ssh.write_text('#!/bin/sh\ncase "$3" in\n'
                   f'*.1) gpus={",".join(visible[:devices])} ;;\n'
                   f'*) gpus={",".join(visible[devices:2 * devices])} ;;\nesac\n'
                   'export CUDA_VISIBLE_DEVICES="$gpus" TROUPE_STANDIN_HOST="${3##*.}"\n'
                   'cd / && exec sh -c "$4"\n')
    ssh.chmod(0o755)
    return folder


def hosts(runs):
    wanted, replay = alone(runs)
    devices = 2 if runs.gpus >= 4 else 1
    cluster = f"{{nodes: 2, devices_per_node: {devices}, workers_per_node: 1}}"
    plan = runs.plan_file("apart", plan_text(cluster, APART[devices]))
    environment = {**os.environ, "PATH": f"{ssh_between_gpus(runs, devices)}:{os.environ['PATH']}"}
    lines = runs.train("apart", devices, f"plan={plan}", replay, "cluster.nodes=2",
                       "cluster.workers_per_node=1", "cluster.launcher=ssh",
                       "cluster.hosts=[127.0.0.1, 127.0.0.2]", "cluster.bind=127.0.0.1",
                       "trace.enabled=true", environment=environment)
    traces = (runs.folder / "runs/apart/trace").glob("worker_*")
    return {"worst": furthest(wanted, lines),
            "nccl_moves": sum(b"weights by NCCL" in trace.read_bytes() for trace in traces)}


def contexts_of(pids):
    """The most GPUs on which one of the processes has a context; None: the driver does not
    say, as in a container with process numbers of its own."""
    try:
        said = subprocess.run(["nvidia-smi", "--query-compute-apps=gpu_uuid,pid",
                               "--format=csv,noheader"], capture_output=True, text=True,
                              timeout=15, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = {}
    for gpu, _, pid in (line.partition(", ") for line in said.splitlines()):
        if pid.isdigit() and int(pid) in pids:
            found.setdefault(int(pid), set()).add(gpu)
    return max(map(len, found.values()), default=None)


def kill(runs):
    devices = runs.preset_devices
    words = runs.command("killed", devices, "plan=data_parallel", f"run.steps={STEPS_OF_KILL}",
                         "run.save_every=2")
    folder = runs.folder / "runs/killed"
    with open(runs.folder / "killed.log", "w", encoding="utf-8") as said:
        process = subprocess.Popen(words, cwd=runs.folder, stdout=said,
                                   stderr=subprocess.STDOUT)
        until(lambda: process.poll() is not None
              or max(runs.metrics("killed"), default=0) >= KILLED_AFTER,
              f"step {KILLED_AFTER}", KILLED_WITHIN_S)
        workers = [each["pid"] for each in
                   json.loads((folder / "status.json").read_text())["workers"]]
        contexts = contexts_of(workers) if runs.device == "gpu" else None
        os.kill(workers[-1], signal.SIGKILL)
        code = process.wait()
    if code != 0:
        raise SystemExit(f"ended with {code}\n{(runs.folder / 'killed.log').read_text()}")
    if contexts and contexts > devices // 2:
        raise SystemExit(f"a worker with {devices // 2} devices has contexts on {contexts} GPUs")
    last = runs.metrics("killed")[STEPS_OF_KILL]
    return {"restarts": last["training/restarts"], "lost_steps": last["training/lost_steps"],
            "contexts": contexts}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("alike", "hosts", "kill"))
    parser.add_argument("--plans", default="data_parallel")
    parser.add_argument("--troupe", type=pathlib.Path, required=True)
    parser.add_argument("--tiny-data", type=pathlib.Path, required=True)
    parser.add_argument("--device", choices=("cpu", "gpu"), required=True)
    parser.add_argument("--gpus", type=int, default=4, help="2 or more")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    asked = parser.parse_args()
    asked.out = asked.out.resolve()
    runs = Runs(asked)
    found = alike(runs, asked.plans.split(",")) if asked.verb == "alike" \
        else {"hosts": hosts, "kill": kill}[asked.verb](runs)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
