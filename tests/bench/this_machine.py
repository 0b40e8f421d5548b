"""How well the cost model knows this machine: predicted against measured step
times of plans that were not profiled. One command, one Markdown record.

    python3 -B tests/bench/this_machine.py --out record.md            # ~20 min
    python3 -B tests/bench/this_machine.py --devices 4 --out order.md # order only
    python3 -B tests/bench/this_machine.py --smoke --out smoke.md

Protocol: profile the machine; one plan run ten times (noise floor); random
plans, each simulated with the profile and run for some steps; mean absolute
error, rank correlation, two null models fitted to the very measurements (a
constant; a line in the devices that generate and that train), and the regret
of trusting the five plans ranked first. Prompts differ and have one length, and
answers run to their limit, so lengths are known and equal in prediction and
run. Runs beside which other programs took more than a fifth of a core are marked
and make the record void, and so does a machine that changes its speed: the
first plan is run again now and then. Needs the programs `troupe` and
`tiny_data` of TROUPE_BUILD (build).
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from support import BUILD, TINY, TROUPE, make_scorer  # noqa: E402

PROGRAM = TROUPE.resolve()
BUSY_CORES = 0.2  # of other programs: a run beside them is void
DRIFT = 0.1  # of the first plan's time: a record beyond it is void
PLANS_BETWEEN = 6  # two looks at the machine's speed
RUN_LIMIT_S = 600
CALLS = ("actor_gen", "rew_inf", "ref_inf", "critic_inf", "actor_train",
         "critic_train")


# -- the workload ------------------------------------------------------------

class Workload:
    """PPO of the demo's model on `devices` devices, in a folder of its own."""

    def __init__(self, folder, devices, batch, tokens):
        self.folder, self.devices, self.runs = folder, devices, 0
        subprocess.run([BUILD.resolve() / "tiny_data", "--out", folder / "data"],
                       check=True, stdout=subprocess.DEVNULL)
        make_scorer(folder / "data/base", folder / "data/scorer")
        prompts, length = self.equal_prompts(batch)
        (folder / "prompts.jsonl").write_text("".join(
            json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
        self.words = [
            str(TINY / "ppo.yaml"), "data.train=prompts.jsonl",
            f"data.batch_size={batch}", f"data.max_prompt_tokens={length}",
            f"rollout.max_new_tokens={tokens}",
            f"rollout.min_new_tokens={tokens}", "run.save_every=0",
            f"cluster.devices_per_node={devices}",
            "cluster.workers_per_node=2",
            *(f"models.{role}.path=data/{model}" for role, model in
              (("actor", "base"), ("ref", "base"), ("critic", "scorer"),
               ("reward", "scorer")))]

    def program(self, *words, text_in=None):
        done = subprocess.run([str(PROGRAM), *map(str, words)], cwd=self.folder,
                              input=text_in, capture_output=True, text=True,
                              timeout=RUN_LIMIT_S, env={
                                  **os.environ,
                                  "XDG_CACHE_HOME": str(self.folder / "cache")})
        if done.returncode != 0:
            raise SystemExit(f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def equal_prompts(self, batch):
        """Distinct prompts of the commonest length, and that length."""
        rows = (self.folder / "data/prompts.jsonl").read_text().splitlines()
        prompts = sorted({json.loads(row)["prompt"] for row in rows})
        by_length = {}
        lines = self.program(
            "tokenize", "--model", "data/base",
            text_in="".join(json.dumps(p) + "\n" for p in prompts)).stdout
        for prompt, ids in zip(prompts, lines.splitlines()):
            by_length.setdefault(len(json.loads(ids)), []).append(prompt)
        length, equal = max(by_length.items(), key=lambda item: len(item[1]))
        if len(equal) < batch:
            raise SystemExit(f"{len(equal)} prompts of {length} tokens, which "
                             f"is no batch of {batch}; try a smaller --batch")
        return equal[:len(equal) // batch * batch], length

    def profile(self):
        self.program("profile", *self.words, "plan=data_parallel", "--out",
                     "hardware.yaml")

    def write(self, plan):
        lines = [f"cluster: {{nodes: 1, devices_per_node: {self.devices}, "
                 "workers_per_node: 2}", "calls:",
                 "  advantages: {devices: host}"]
        lines += [f"  {call}: {{devices: {where}, strategy: {how}}}"
                  for call, (where, how) in plan.items()]
        file = self.folder / "plan.yaml"
        file.write_text("\n".join(lines) + "\n")
        return file

    def predicted(self, plan):
        """Seconds of a step and bytes of the fullest device."""
        run = json.loads(self.program(
            "plan", "simulate", *self.words, "--plan", self.write(plan),
            "--hardware", "hardware.yaml", "--json").stdout)
        return run["step_s"], max(d["peak_bytes"] for d in run["devices"])

    def measured(self, plan, steps):
        """Median seconds of a step behind the first, resident bytes of the
        largest worker, and cores that other programs took."""
        self.runs += 1
        quiet = OtherPrograms()
        self.program("train", *self.words, f"plan={self.write(plan)}",
                     f"run.name=run{self.runs}", f"run.steps={steps + 1}")
        others = quiet.cores()
        file = self.folder / f"runs/run{self.runs}/metrics.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()][1:]
        return (statistics.median(row["timing_s/step"] for row in rows),
                1e9 * max(row["perf/max_memory_gb"] for row in rows), others)


class OtherPrograms:
    """Cores that programs other than ours took since this was made."""

    def __init__(self):
        self.begin = time.monotonic(), self.all_s(), self.own_s()

    @staticmethod
    def all_s():
        with open("/proc/stat", encoding="ascii") as lines:
            numbers = [int(n) for n in lines.readline().split()[1:9]]
        idle = numbers[3] + numbers[4]
        return (sum(numbers) - idle) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def own_s():
        spent = os.times()
        return (spent.user + spent.system + spent.children_user
                + spent.children_system)

    def cores(self):
        wall, everything, own = self.begin
        passed = max(1e-9, time.monotonic() - wall)
        return max(0.0, (self.all_s() - everything
                         - (self.own_s() - own)) / passed)


class Speed:
    """One plan's time, looked at again while others are measured."""

    def __init__(self, workload, plan, steps, seconds):
        self.workload, self.plan, self.steps = workload, plan, steps
        self.seconds, self.later = seconds, []

    def look(self):
        self.later.append(self.workload.measured(self.plan, self.steps)[0])

    def words(self):
        drift = max(abs(later / self.seconds - 1) for later in self.later)
        void = "**Void**: " if drift > DRIFT else ""
        return [f"{void}the first plan, run again {len(self.later)} times in "
                f"between, was up to {100 * drift:.0f} % off.", ""]


# -- plans -------------------------------------------------------------------

def choices(devices, train):
    """Meshes and strategies that a call may have."""
    found = []
    size = 1
    while size <= devices:
        for first in range(0, devices, size):
            where = str(first) if size == 1 else f"{first}-{first + size - 1}"
            names = ["d1"] if size == 1 else [f"d{size}", f"t{size}",
                                              f"p{size}"]
            if size == 4:
                names.append("d2t2")
            if train and size > 1:
                names += [f"d{size}z1", f"d{size}z3"]
            found += [(where, name) for name in names]
        size *= 2
    return found


def random_plans(devices, count):
    draw, plans = random.Random(7), []
    while len(plans) < count:
        plan = {call: draw.choice(choices(devices, call.endswith("train")))
                for call in CALLS}
        if plan not in plans:
            plans.append(plan)
    return plans


def num_devices(where):
    first, _, last = where.partition("-")
    return int(last or first) - int(first) + 1


# -- statistics --------------------------------------------------------------

def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    for place, index in enumerate(order):
        found[index] = float(place)
    return found


def correlation(a, b):
    if len(set(a)) < 2 or len(set(b)) < 2:
        return 0.0
    return statistics.correlation(a, b)


def mean_error(predicted, measured):
    return statistics.fmean(abs(p / m - 1) for p, m in zip(predicted, measured))


def solve(matrix, right):
    """Gauss with pivots; rows of `matrix` are changed. A column that says
    nothing gets no weight."""
    size = len(right)
    for i in range(size):
        best = max(range(i, size), key=lambda row: abs(matrix[row][i]))
        matrix[i], matrix[best] = matrix[best], matrix[i]
        right[i], right[best] = right[best], right[i]
        if abs(matrix[i][i]) < 1e-12:
            matrix[i][i] = 1.0
            right[i] = 0.0
            continue
        for row in range(size):
            if row == i:
                continue
            factor = matrix[row][i] / matrix[i][i]
            matrix[row] = [x - factor * y
                           for x, y in zip(matrix[row], matrix[i])]
            right[row] -= factor * right[i]
    return [right[i] / matrix[i][i] for i in range(size)]


def line_model(plans, measured):
    """Least squares in 1, 1/devices that generate, 1/devices that train."""
    rows = [(1.0, 1 / num_devices(plan["actor_gen"][0]),
             1 / num_devices(plan["actor_train"][0])) for plan in plans]
    matrix = [[sum(r[i] * r[k] for r in rows) for k in range(3)]
              for i in range(3)]
    right = [sum(r[i] * m for r, m in zip(rows, measured)) for i in range(3)]
    weights = solve(matrix, right)
    return [sum(w * x for w, x in zip(weights, row)) for row in rows]


# -- the record --------------------------------------------------------------

def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(": ", 1)[1].strip()
    return "unknown processor"


def summary(plans, predicted, measured, noise):
    best = min(measured)
    first = sorted(range(len(plans)), key=predicted.__getitem__)[:5]
    regret = min(measured[i] for i in first) / best - 1
    floor = statistics.pstdev(noise) / statistics.fmean(noise)
    bias = statistics.fmean(p / m - 1 for p, m in zip(predicted, measured))
    worst = max((abs(p / m - 1) for p, m in zip(predicted, measured)))
    constant = [statistics.fmean(measured)] * len(measured)
    rows = [
        ("noise floor: one plan, spread of its runs",
         f"{100 * floor:.1f} % of {statistics.fmean(noise):.3f} s "
         f"({len(noise)} runs)", ""),
        ("mean absolute error", f"{100 * mean_error(predicted, measured):.1f} %",
         f"under {max(15.0, 200 * floor):.0f} %"),
        ("signed bias; worst plan",
         f"{100 * bias:+.1f} %; {100 * worst:.0f} %", ""),
        ("rank correlation",
         f"{correlation(ranks(predicted), ranks(measured)):.3f}",
         "at least 0.9"),
        ("null model: a constant, its mean absolute error",
         f"{100 * mean_error(constant, measured):.1f} %", "worse than ours"),
        ("null model: three parameters, its mean absolute error",
         f"{100 * mean_error(line_model(plans, measured), measured):.1f} %",
         "worse than ours"),
        ("regret: best of the five ranked first against the best",
         f"{100 * regret:.1f} %", "within 5 %")]
    return ["| what | found | aim |", "|---|---|---|",
            *(f"| {a} | {b} | {c} |" for a, b, c in rows)]


def plan_rows(plans, predicted, measured, memory, others):
    rows = ["| plan | predicted s | measured s | error | predicted peak MB | "
            "worker MB | others' cores |", "|---|---|---|---|---|---|---|"]
    for i, plan in enumerate(plans):
        words = ", ".join(f"{call} {where} {how}"
                          for call, (where, how) in plan.items())
        rows.append(
            f"| {words} | {predicted[i]:.3f} | {measured[i]:.3f} | "
            f"{100 * (predicted[i] / measured[i] - 1):+.0f} % | "
            f"{memory[i][0] / 1e6:.0f} | {memory[i][1] / 1e6:.0f} | "
            f"{others[i]:.2f} |")
    return rows


def record(options, workload):
    plans = random_plans(options.devices, options.plans)
    workload.profile()
    noise, others_then = [], []
    for _ in range(options.noise_runs):
        seconds, _, busy = workload.measured(plans[0], options.steps)
        noise.append(seconds)
        others_then.append(busy)
    speed = Speed(workload, plans[0], options.steps, statistics.median(noise))
    predicted, measured, memory, others = [], [], [], []
    for i, plan in enumerate(plans):
        if i % PLANS_BETWEEN == 0:
            speed.look()
        guess_s, peak = workload.predicted(plan)
        seconds, resident, busy = workload.measured(plan, options.steps)
        predicted.append(guess_s)
        measured.append(seconds)
        memory.append((peak, resident))
        others.append(busy)
        print(f"{i + 1}/{len(plans)}: predicted {guess_s:.3f} s, measured "
              f"{seconds:.3f} s, others {busy:.2f} cores", file=sys.stderr)
    speed.look()
    busy = [b for b in others_then + others if b > BUSY_CORES]
    head = [f"# Predicted against measured on {options.devices} devices", "",
            f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores of "
            f"{processor()}; {len(plans)} plans that were not profiled, "
            f"{options.steps} steps each.",
            f"PPO of the demo's model, {options.batch} samples, answers of "
            f"{options.tokens} tokens. Command: `python3 -B "
            f"tests/bench/this_machine.py {' '.join(sys.argv[1:])}`.", ""]
    if busy:
        head += [f"**Void**: beside {len(busy)} runs other programs took more "
                 f"than {BUSY_CORES} cores (at most {max(busy):.2f}).", ""]
    head += speed.words()
    if os.cpu_count() < options.devices:
        head += ["Devices share cores: only the order counts.", ""]
    return "\n".join([*head, *summary(plans, predicted, measured, noise), "",
                      *plan_rows(plans, predicted, measured, memory, others),
                      ""])


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--out", required=True)
    words.add_argument("--devices", type=int, choices=(2, 4), default=2)
    words.add_argument("--plans", type=int, default=24)
    words.add_argument("--steps", type=int, default=8)
    words.add_argument("--noise-runs", type=int, default=10)
    words.add_argument("--batch", type=int, default=32)
    words.add_argument("--tokens", type=int, default=32)
    words.add_argument("--smoke", action="store_true",
                       help="three plans, two steps, two noise runs")
    options = words.parse_args()
    if options.smoke:
        options.plans, options.steps, options.noise_runs = 3, 2, 2
    with tempfile.TemporaryDirectory(prefix="troupe-machine-") as folder:
        workload = Workload(pathlib.Path(folder), options.devices,
                            options.batch, options.tokens)
        text = record(options, workload)
    pathlib.Path(options.out).write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
