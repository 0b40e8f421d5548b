"""How well the cost model knows this machine: predicted against measured step
times of plans that were not profiled. One command, one Markdown record.

    python3 -B tests/bench/this_machine.py --out record.md            # ~10 min
    python3 -B tests/bench/this_machine.py --devices 4 --out order.md # order only
    python3 -B tests/bench/this_machine.py --smoke --out smoke.md
    python3 -B tests/bench/this_machine.py --devices 4 --json 4.json ...
    python3 -B tests/bench/this_machine.py --again 4.json ...  # predict anew

Protocol: profile the machine; one plan run ten times (noise floor); random
plans, each simulated with the profile and run for some steps; mean absolute
error, rank correlation, two null models fitted to the very measurements (a
constant; a line in the devices that generate and that train), and the regret
of trusting the five plans ranked first. Prompts differ and have one length, and
answers run to their limit, so lengths are known and equal in prediction and
run. A shared machine changes its speed, so each plan is run between two runs of
the first one and its seconds are those of the machine as it was profiled. Where
the two differ, or other programs took more than a fifth of a core, it is run
again; where that does not help, the record is void. What nobody sees (a host
that gives its cores to others for a second) only makes a run longer, so all
plans are run in two rounds, minutes apart, and the shorter run of a plan counts.
The record says how well the rounds agree. Needs the programs `troupe`
and `tiny_data` of TROUPE_BUILD (build).
"""
import argparse
import array
import json
import math
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from support import BUILD, TINY, TROUPE, make_scorer  # noqa: E402

BUSY_CORES = 0.2  # of other programs: a run beside them is void
DRIFT = 0.1  # between the looks before and behind a plan: its run is void
TRIES = 4  # runs of a plan whose runs are void
RUN_LIMIT_S = 600
CALLS = ("actor_gen", "rew_inf", "ref_inf", "critic_inf", "actor_train",
         "critic_train")
# Of metrics.jsonl, by call; moves are one number.
TIMES = dict(zip(CALLS, ("gen", "reward", "ref", "values", "update_actor",
                         "update_critic"))) | {"moves": "move"}
MINI_BATCH = 8  # samples of an optimizer step: the batch in 4 mini-batches
# hidden, layers: of a model whose work is more than what its calls cost
WIDE = (256, 4)


# -- the workload ------------------------------------------------------------

def words_of(place):
    return "{" + ", ".join(f"{k}: {v}" for k, v in place.items()) + "}"


def widen(folder, hidden, layers):
    """Random weights of another size in the place of the model's."""
    config = json.loads((folder / "config.json").read_text())
    heads, kv_heads, inner, vocab = 8, 4, 3 * hidden, config["vocab_size"]
    kv = hidden // heads * kv_heads
    config |= {"hidden_size": hidden, "num_hidden_layers": layers,
               "intermediate_size": inner, "num_attention_heads": heads,
               "num_key_value_heads": kv_heads, "head_dim": hidden // heads}
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": (vocab, hidden)}
    for i in range(layers):
        at = f"model.layers.{i}."
        shapes |= {at + "input_layernorm.weight": (hidden,),
                   at + "self_attn.q_proj.weight": (hidden, hidden),
                   at + "self_attn.k_proj.weight": (kv, hidden),
                   at + "self_attn.v_proj.weight": (kv, hidden),
                   at + "self_attn.o_proj.weight": (hidden, hidden),
                   at + "post_attention_layernorm.weight": (hidden,),
                   at + "mlp.gate_proj.weight": (inner, hidden),
                   at + "mlp.up_proj.weight": (inner, hidden),
                   at + "mlp.down_proj.weight": (hidden, inner)}
    shapes |= {"model.norm.weight": (hidden,),
               "lm_head.weight": (vocab, hidden)}
    draw = random.Random(2)
    some = array.array("f", (draw.gauss(0, hidden ** -0.5)
                             for _ in range(4093)))
    header, data = {}, bytearray()
    for name, shape in shapes.items():
        count, begin = math.prod(shape), len(data)
        numbers = (array.array("f", [1.0]) * count if len(shape) == 1
                   else (some * (count // len(some) + 1))[:count])
        data += numbers.tobytes()
        header[name] = {"dtype": "F32", "shape": list(shape),
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + bytes(data))


class Workload:
    """PPO of the demo's model on `devices` devices, in a folder of its own."""

    def __init__(self, folder, devices, batch, tokens, wide):
        self.folder, self.devices, self.runs = folder, devices, 0
        subprocess.run([BUILD / "tiny_data", "--out", folder / "data"],
                       check=True, stdout=subprocess.DEVNULL)
        if wide:
            widen(folder / "data/base", *WIDE)
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
        done = subprocess.run([str(TROUPE), *map(str, words)], cwd=self.folder,
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
        lines += [f"  {call}: {words_of(place)}"
                  for call, place in plan.items()]
        file = self.folder / "plan.yaml"
        file.write_text("\n".join(lines) + "\n")
        return file

    def predicted(self, plan):
        """Seconds of a step, bytes of the fullest device, seconds by call."""
        run = json.loads(self.program(
            "plan", "simulate", *self.words, "--plan", self.write(plan),
            "--hardware", "hardware.yaml", "--json").stdout)
        last = max(task["step"] for task in run["tasks"])
        spent = dict.fromkeys(TIMES, 0.0)
        for task in run["tasks"]:
            name = task["call"] or "moves"
            if task["step"] == last and name in spent:
                spent[name] += task["end_s"] - task["start_s"]
        return (run["step_s"], max(d["peak_bytes"] for d in run["devices"]),
                spent)

    def measured(self, plan, steps):
        """Median seconds of a step behind the first, bytes of the fullest
        device, cores that other programs took, seconds by call."""
        self.runs += 1
        quiet = OtherPrograms()
        self.program("train", *self.words, f"plan={self.write(plan)}",
                     f"run.name=run{self.runs}", f"run.steps={steps + 1}")
        others = quiet.cores()
        file = self.folder / f"runs/run{self.runs}/metrics.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()][1:]
        spent = {call: statistics.median(row.get(f"timing_s/{name}", 0.0)
                                         for row in rows)
                 for call, name in TIMES.items()}
        return (statistics.median(row["timing_s/step"] for row in rows),
                1e9 * max(row["perf/device_memory_gb"] for row in rows), others,
                spent)


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
    """How long the first plan takes now, of what it took at first."""

    def __init__(self, workload, plan, steps, seconds):
        self.workload, self.plan, self.steps = workload, plan, steps
        self.seconds, self.looks = seconds, []

    def look(self):
        seconds, _, others, _ = self.workload.measured(self.plan, self.steps)
        self.looks.append(seconds / self.seconds)
        return self.looks[-1], others

    def words(self):
        low, high = min(self.looks), max(self.looks)
        return [f"The first plan, run {len(self.looks)} times in between, took "
                f"{low:.2f} to {high:.2f} of its first time; each plan's seconds "
                "are divided by the mean of the runs before and behind it.", ""]


# -- plans -------------------------------------------------------------------
# What a user would choose between, by a rule that no measurement changed: of
# each of eight families as many plans, drawn with a seed of their own.

def mesh(first, count):
    return str(first) if count == 1 else f"{first}-{first + count - 1}"


def on(first, count, letter="d", suffix="", **more):
    return {"devices": mesh(first, count), "strategy": f"{letter}{count}{suffix}",
            **more}


def anywhere(draw, devices, train):
    """Any mesh and strategy that a call may have."""
    size = draw.choice([n for n in (1, 2, 4) if n <= devices])
    first = draw.randrange(0, devices, size)
    if size == 1:
        return on(first, 1)
    names = [("d", ""), ("t", ""), ("p", "")]
    if train:
        names += [("d", "z1"), ("d", "z3")]
    letter, suffix = draw.choice(names)
    return on(first, size, letter, suffix)


def one_device_each(draw, devices):
    return {call: on(draw.randrange(devices), 1) for call in CALLS}


def on_all(letter):
    def plan(draw, devices):
        # 0: as the run chooses; `troupe profile` runs d and t so chosen, which
        # are no test of it
        counts = (0, 4, 8) if letter == "p" else (2, 4, 8)
        samples = MINI_BATCH // (devices if letter == "d" else 1)
        inference = draw.choice(counts)
        training = draw.choice([n for n in counts if n <= samples])

        def place(call):
            count = training if call.endswith("train") else inference
            more = {"micro_batches": count} if count else {}
            return on(0, devices, letter, "",
                      **({} if call == "actor_gen" else more))
        return {call: place(call) for call in CALLS}
    return plan


def sharded(draw, devices):
    plan = {call: on(0, devices, draw.choice("dt")) for call in CALLS}
    for call in CALLS[-2:]:
        plan[call] = on(0, devices, "d", draw.choice(("z1", "z3")))
    return plan


def groups(draw, devices):
    """All generate; then every call has devices of its own."""
    half = devices // 2
    plan = {"actor_gen": on(0, devices, draw.choice("dtp"))}
    for calls in (CALLS[1:4], CALLS[4:]):
        sides = [0, half] + [draw.choice((0, half)) for _ in calls[2:]]
        draw.shuffle(sides)
        for call, side in zip(calls, sides):
            plan[call] = on(side, half, draw.choice("dt") if half > 1 else "d")
    return plan


def chunked(draw, devices):
    """Answers are scored on one half while the other one generates."""
    half = devices // 2
    count = draw.choice((2, 4))
    side = draw.choice((0, half))
    plan = {"actor_gen": on(side, half, chunks=count)}
    for call in CALLS[1:4]:
        plan[call] = on(half - side, half, chunks=count)
    for call, place in zip(CALLS[4:], (0, half)):
        plan[call] = draw.choice((on(place, half), on(0, devices)))
    return plan


def mixed(draw, devices):
    return {call: anywhere(draw, devices, call.endswith("train"))
            for call in CALLS}


FAMILIES = {"one device a call": one_device_each, "data": on_all("d"),
            "tensor": on_all("t"), "pipeline": on_all("p"),
            "sharded": sharded, "groups": groups, "chunks": chunked,
            "mixed": mixed}


def drawn_plans(devices, count):
    """(family, plan), `count` in all, the families by turns."""
    draw, plans = random.Random(7), []
    while len(plans) < count:
        name = list(FAMILIES)[len(plans) % len(FAMILIES)]
        plan = FAMILIES[name](draw, devices)
        if all(plan != other for _, other in plans):
            plans.append((name, plan))
    return plans


def num_devices(place):
    first, _, last = place["devices"].partition("-")
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
    rows = [(1.0, 1 / num_devices(plan["actor_gen"]),
             1 / num_devices(plan["actor_train"])) for plan in plans]
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


def summary(runs, noise):
    plans = [run["plan"] for run in runs]
    predicted = [run["predicted"] for run in runs]
    measured = [run["measured"] for run in runs]
    memory = [abs(run["peak"] / run["counted"] - 1) for run in runs]
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
         f"{100 * regret:.1f} %", "within 5 %"),
        ("peak memory of the fullest device: mean absolute error; worst plan",
         f"{100 * statistics.fmean(memory):.1f} %; {100 * max(memory):.0f} %",
         "within 15 %")]
    return ["| what | found | aim |", "|---|---|---|",
            *(f"| {a} | {b} | {c} |" for a, b, c in rows)]


def plan_rows(runs):
    rows = ["| family | plan | predicted s | measured s | error | predicted "
            "peak MB | counted MB | others' cores |",
            "|---|---|---|---|---|---|---|---|"]
    for run in runs:
        words = ", ".join(f"{call} {' '.join(map(str, place.values()))}"
                          for call, place in run["plan"].items())
        rows.append(
            f"| {run['family']} | {words} | {run['predicted']:.3f} | "
            f"{run['measured']:.3f} | "
            f"{100 * (run['predicted'] / run['measured'] - 1):+.0f} % | "
            f"{run['peak'] / 1e6:.1f} | {run['counted'] / 1e6:.0f} | "
            f"{run['others']:.2f} |")
    return rows


def call_rows(runs):
    """Where errors come from: seconds by call, the mean over all plans."""
    rows = ["| call | predicted ms | measured ms |", "|---|---|---|"]
    for call in TIMES:
        found = [statistics.fmean(run[which][call] for run in runs)
                 for which in ("predicted_calls", "measured_calls")]
        rows.append(f"| {call} | {1e3 * found[0]:.1f} | {1e3 * found[1]:.1f} |")
    return rows


def one_run(workload, plan, steps, speed, before):
    """A run of `plan` at the speed that the machine had at first, whether it
    counts, and the look behind it."""
    seconds, counted, busy, spent = workload.measured(plan, steps)
    after = speed.look()
    slower = (before[0] + after[0]) / 2
    drift = abs(after[0] - before[0]) / slower
    busy = max(busy, before[1], after[1])
    run = {"measured": seconds / slower, "counted": counted, "others": busy,
           "drift": drift, "slower": slower,
           "measured_calls": {c: s / slower for c, s in spent.items()}}
    return run, after


def counts(run):
    return run["others"] <= BUSY_CORES and run["drift"] <= DRIFT


def run_plans(workload, plans, steps, speed):
    """Each plan once, with its prediction."""
    runs, before = [], speed.look()
    for i, (family, plan) in enumerate(plans):
        guess_s, peak, guessed = workload.predicted(plan)
        for attempt in range(1, TRIES + 1):
            run, before = one_run(workload, plan, steps, speed, before)
            if counts(run):
                break
        runs.append({"family": family, "plan": plan, "predicted": guess_s,
                     "peak": peak, "predicted_calls": guessed,
                     "attempts": attempt, **run})
        print(f"{i + 1}/{len(plans)} {family}: predicted {guess_s:.3f} s, "
              f"measured {run['measured']:.3f} s, run {attempt}, machine at "
              f"{run['slower']:.2f}, drift {run['drift']:.2f}, others "
              f"{run['others']:.2f} cores", file=sys.stderr)
    return runs


def shorter(rounds):
    """Of each plan the shorter of its runs that count."""
    best = []
    for runs in zip(*rounds):
        run = min(runs, key=lambda r: (not counts(r), r["measured"]))
        best.append(run | {"attempts": max(r["attempts"] for r in runs)})
    return best


def agreement_words(rounds):
    if len(rounds) < 2:
        return []
    first, second = ([run["measured"] for run in runs] for runs in rounds[:2])
    return [f"Two rounds: the shorter run of a plan counts. The rounds are "
            f"{100 * mean_error(first, second):.1f} % apart, their rank "
            f"correlation is {correlation(ranks(first), ranks(second)):.3f}.",
            ""]


def void_words(runs, others_at_first):
    """Why the record proves nothing, or nothing."""
    bad = [run for run in runs if not counts(run)]
    again = sum(run["attempts"] - 1 for run in runs)
    words = [f"{again} runs were repeated."] if again else []
    if bad or max(others_at_first) > BUSY_CORES:
        words.append(f"**Void**: {len(bad)} plans ran beside other programs or "
                     "while the machine changed its speed, however often they "
                     f"were tried; cores of others at first: at most "
                     f"{max(others_at_first):.2f}.")
    return [" ".join(words), ""] if words else []


def record(options, workload):
    plans = drawn_plans(options.devices, options.plans)
    workload.profile()
    noise, others_then = [], []
    for _ in range(options.noise_runs):
        seconds, _, busy, _ = workload.measured(plans[0][1], options.steps)
        noise.append(seconds)
        others_then.append(busy)
    speed = Speed(workload, plans[0][1], options.steps,
                  statistics.median(noise))
    rounds = [run_plans(workload, plans, options.steps, speed)
              for _ in range(options.rounds)]
    runs = shorter(rounds)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {"runs": runs, "noise": noise, "hardware":
             (workload.folder / "hardware.yaml").read_text()}, indent=1))
    head = [f"# Predicted against measured on {options.devices} devices", "",
            f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores of "
            f"{processor()}; {len(plans)} plans that were not profiled, "
            f"{options.steps} steps each.",
            f"PPO of {model_words(options)}, {options.batch} samples, answers "
            f"of {options.tokens} tokens. Command: `python3 -B "
            f"tests/bench/this_machine.py {' '.join(sys.argv[1:])}`.", ""]
    head += void_words(runs, others_then) + speed.words()
    head += agreement_words(rounds)
    if os.cpu_count() < options.devices:
        head += ["Devices share cores: only the order counts.", ""]
    return "\n".join([*head, *summary(runs, noise), "", *call_rows(runs), "",
                      *plan_rows(runs), ""])


def again(options, workload):
    """What this build predicts of plans that were measured before."""
    known = json.loads(pathlib.Path(options.again).read_text())
    (workload.folder / "hardware.yaml").write_text(known["hardware"])
    for run in known["runs"]:
        run["predicted"], run["peak"], run["predicted_calls"] \
            = workload.predicted(run["plan"])
    runs = known["runs"]
    return "\n".join([f"# Predicted anew: {len(runs)} plans on "
                      f"{options.devices} devices", "",
                      *summary(runs, known["noise"]), "", *call_rows(runs), "",
                      *plan_rows(runs), ""])


def model_words(options):
    if options.model == "demo":
        return "the demo's model"
    return f"models of {WIDE[1]} layers and {WIDE[0]} hidden units"


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--out", required=True)
    words.add_argument("--devices", type=int, choices=(2, 4), default=2)
    words.add_argument("--plans", type=int, default=24)
    words.add_argument("--steps", type=int, default=8)
    words.add_argument("--rounds", type=int, choices=(1, 2), default=2)
    words.add_argument("--noise-runs", type=int, default=10)
    words.add_argument("--batch", type=int, default=4 * MINI_BATCH)
    words.add_argument("--tokens", type=int, default=32)
    words.add_argument("--model", choices=("demo", "wide"), default="demo")
    words.add_argument("--json", default="", help="all numbers, for a closer look")
    words.add_argument("--again", default="", help="such numbers: nothing is "
                       "run, the same plans are predicted with their hardware; "
                       "--devices, --batch, --tokens and --model as then")
    words.add_argument("--smoke", action="store_true",
                       help="three plans, two steps, two noise runs")
    options = words.parse_args()
    if options.smoke:
        options.plans, options.steps, options.noise_runs = 3, 2, 2
        options.rounds = 1
    with tempfile.TemporaryDirectory(prefix="troupe-machine-") as folder:
        workload = Workload(pathlib.Path(folder), options.devices,
                            options.batch, options.tokens,
                            options.model == "wide")
        text = (again if options.again else record)(options, workload)
    pathlib.Path(options.out).write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
