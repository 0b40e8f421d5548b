"""First light: what a machine with a GPU is asked, from harmless to heavy, in ten minutes,
with a time limit for each step, a table and a JSON document at the end.

    tests/gpu/first_light.sh [--build DIR] [--out DIR] [--list] [--only WORDS] [--keep-going]
    tests/gpu/first_light.sh --gpus 8      two to eight GPUs (first_light_many.sh)
    tests/gpu/first_light.sh --rehearse    all of it on the CPU, with small models

Stops at the first step that is red. A figure below its aim is said and stops nothing.
Exit codes: 0; 1 a step was red; 2 mistakes; 77 there is no GPU, and what needs none is
green. Only Python's standard library."""
import argparse
import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
import roofline
from expectations import Outcome, complaints
from first_light_steps import MANY_GPUS, MINUTES, ONE_GPU, rehearsed

ROOT = pathlib.Path(__file__).resolve().parents[2]
NO_GPU = 77
TAIL_LINES = 15
WORD = re.compile(r"\{(\w+)\}")
FIGURES = ("ms_token", "tok_s", "mfu", "gb_s", "of_copy", "bus_gb_s", "step_median_s",
           "worst", "restarts")


@dataclasses.dataclass
class Result:
    name: str
    state: str  # green, below its aim, red, known red, cut, skipped, not reached
    seconds: float = 0.0
    why: str = ""
    numbers: dict = dataclasses.field(default_factory=dict)


# -- the machine -------------------------------------------------------------------


def said_by(*command, limit_s=15):
    """Output of a command; empty where it is missing, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s,
                              check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def gpu_names():
    lines = said_by("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    return [line.strip() for line in lines.splitlines() if line.strip()]


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def facts(root, gpus):
    kept = root / "COMMIT"  # of a bundle
    commit = kept.read_text().strip() if kept.is_file() else \
        said_by("git", "-C", str(root), "rev-parse", "HEAD")
    driver = said_by("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    header = said_by("nvidia-smi")
    cuda = header.partition("CUDA Version:")[2].split()[:1]
    return {"commit": commit, "gpus": gpus, "driver": driver.partition("\n")[0],
            "cuda": cuda[0] if cuda else "", "torch": version_of("torch"),
            "nccl": version_of("nvidia-nccl-cu13"), "host": os.uname().release,
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def torch_folders():
    """Of the libraries of this Python's torch and of NVIDIA's packages beside it, which
    is what `import torch` would load."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        return []
    torch = pathlib.Path(next(iter(found.submodule_search_locations)))
    return [torch / "lib", *sorted(torch.parent.glob("nvidia/*/lib"))]


# -- what is run --------------------------------------------------------------------


@dataclasses.dataclass
class Place:
    """Where the programs are, and what their commands are filled in with."""
    words: dict
    environment: dict

    def command(self, step):
        return [WORD.sub(lambda found: self.words[found[1]], word) for word in step.command]


def place_of(root, build, out, device, gpus):
    is_bundle = (build / "models_test").is_file()
    tests = build if is_bundle else build / "tests"
    words = {"troupe": build / "troupe", "bench": build / "troupe-bench",
             "tiny_data": build / "tiny_data", "models_test": tests / "models_test",
             "root": root, "python": sys.executable, "out": out, "device": device,
             "gpus": max(2, gpus)}
    environment = {**os.environ, "TROUPE_SOURCE": str(root), "OMP_WAIT_POLICY": "passive"}
    if is_bundle:
        folders = [root / "lib", *torch_folders()]
        old = os.environ.get("LD_LIBRARY_PATH", "")
        environment["LD_LIBRARY_PATH"] = ":".join([*map(str, folders), *([old] if old else [])])
    return Place({name: str(word) for name, word in words.items()}, environment)


def missing(step, root, num_gpus):
    """Why the step cannot run here; empty if it can."""
    for need in step.needs:
        kind, _, what = need.partition(" ")
        if kind in ("gpu", "gpus") and num_gpus < int(what or 1):
            return f"needs {what or 'a'} GPU{'s' if what else ''}"
        if kind == "program" and shutil.which(what) is None:
            return f"no {what} on this machine"
        if kind == "file" and not (root / what).exists():
            return f"no {what}"
    return ""


def last_document(output):
    """The JSON object in the last line that is one."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return {}
    return {}


def run(command, environment, limit_s, log):
    """(exit code, output); None as the code if it was cut. Its processes end with it."""
    with open(log, "w+", encoding="utf-8", errors="replace") as file:
        try:
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env=environment,
                                       start_new_session=True)
        except OSError as error:
            return 127, f"{command[0]}: {error.strerror}"
        try:
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            code = None
        try:  # also what a step has left running
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        file.seek(0)
        return code, file.read()


def run_step(step, place, log, limit_s, gpu):
    """Its result, and the end of its output if it is red."""
    environment = {**place.environment, **dict(each.split("=", 1) for each in step.environment)}
    begin = time.monotonic()
    code, output = run(place.command(step), environment, limit_s, log)
    result = Result(step.name, "green", round(time.monotonic() - begin, 2))
    tail = "\n".join(output.splitlines()[-TAIL_LINES:])
    if code is None:
        wrong = [f"cut after {limit_s:.0f} s"]
    else:
        result.numbers = roofline.with_figures(last_document(output), gpu)
        outcome = Outcome(code, output, result.numbers, gpu)
        wrong = complaints(step.expects, outcome)
    if wrong:
        result.state = "known red" if step.known_red else "red"
        if code is None and step.may_be_cut:
            result.state = "cut"
        result.why = "; ".join([*wrong, *([step.known_red] if step.known_red else [])])
        return result, tail
    if short := complaints(step.aims, outcome):
        result.state, result.why = "below its aim", "; ".join(short)
    return result, ""


def run_all(steps, place, out, clock, gpus=(), keeps_going=False, root=ROOT):
    """Results of all steps; `clock`: seconds for all together."""
    end, results, stopped = time.monotonic() + clock, [], False
    for index, step in enumerate(steps, 1):
        why = missing(step, root, len(gpus))
        left = end - time.monotonic()
        if stopped or left <= 0:
            results.append(Result(step.name, "not reached", why="" if stopped else "no time"))
            continue
        if why:
            results.append(Result(step.name, "skipped", why=why))
            continue
        print(f"{index:3}/{len(steps)} {step.name} (at most {step.limit_s} s)", flush=True)
        log = out / f"{index:02}.log"
        result, tail = run_step(step, place, log, min(step.limit_s, left),
                                gpus[0] if gpus else "")
        results.append(result)
        if result.state == "red":
            stopped = not keeps_going
            print(f"    red: {result.why}\n{tail}\n    all of it: {log}", flush=True)
    return results


# -- the end ------------------------------------------------------------------------


def figures_of(result):
    shown = [f"{name} {result.numbers[name]:.4g}" for name in FIGURES
             if isinstance(result.numbers.get(name), (int, float))]
    if "predicted" in result.numbers:
        shown.append(f"(predicted {result.numbers['predicted']:.4g})")
    return " ".join(shown)


def table(results, steps):
    aims = {step.name: ", ".join(step.aims) for step in steps}
    rows = [("step", "state", "s", "figures", "aims and reasons")]
    for each in results:
        ran = each.state not in ("skipped", "not reached")
        last = "; ".join(text for text in (each.why, aims.get(each.name, "")) if text)
        rows.append((each.name, each.state, f"{each.seconds:.1f}" if ran else "",
                     figures_of(each), last))
    wide = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join("  ".join([*(cell.ljust(w) for cell, w in zip(row, wide)), row[4]]).rstrip()
                     for row in rows)


def exit_code(results, needs_gpu):
    if any(each.state == "red" or each.why == "no time" for each in results):
        return 1
    return NO_GPU if needs_gpu else 0


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    in_bundle = (ROOT / "bin/models_test").is_file()
    builds = [ROOT / "bin"] if in_bundle else [ROOT / "build-cuda", ROOT / "build"]
    parser.add_argument("--build", type=pathlib.Path,
                        default=next((b for b in builds if b.is_dir()), builds[0]))
    parser.add_argument("--out", type=pathlib.Path,
                        help="logs and first_light.json; default: first_light in the build "
                             "folder, in a bundle ./first_light_results")
    parser.add_argument("--gpus", type=int, default=1, help="1 to 8; the number to use")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--keep-going", action="store_true", help="after a red step too")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="", help="steps whose name has this")
    asked = parser.parse_args(words)
    if asked.out is None:
        asked.out = pathlib.Path("first_light_results") if in_bundle \
            else asked.build / "first_light"
    return asked


def main(words):
    asked = parse(words)
    steps = MANY_GPUS if asked.gpus > 1 else ONE_GPU
    if asked.rehearse:
        steps = [rehearsed(step) for step in steps]
    steps = [step for step in steps if asked.only in step.name]
    if asked.list or not steps:
        print("\n".join(f"{step.limit_s:4} s  {step.name}" for step in steps))
        return 0 if steps else 2
    build, out = asked.build.resolve(), asked.out.resolve()
    if not (build / "troupe").is_file():
        print(f"first_light: no programs in {build}; try --build DIR", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    gpus = [] if asked.rehearse else gpu_names()[:asked.gpus]
    machine = facts(ROOT, gpus)
    print(" ".join(f"{name}={value}" for name, value in machine.items() if value))
    place = place_of(ROOT, build, out, "cpu" if asked.rehearse else "gpu", len(gpus))
    results = run_all(steps, place, out, 60 * asked.minutes, gpus, asked.keep_going)
    print(table(results, steps))
    without = not asked.rehearse and len(gpus) < asked.gpus
    code = exit_code(results, without)
    if code == NO_GPU:
        waits = sum(each.state == "skipped" for each in results)
        print(f"no GPU: {len(gpus)} of {asked.gpus} here; {len(results) - waits} harmless steps "
              f"are green, {waits} wait for one")
    document = {"machine": machine, "exit": code, "rehearsal": asked.rehearse,
                "steps": [dataclasses.asdict(each) for each in results]}
    (out / "first_light.json").write_text(json.dumps(document, indent=1) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
