"""First light: what a machine with a GPU is asked, from harmless to heavy, in ten minutes,
with a time limit for each step, a table and a JSON document at the end.

    tests/gpu/first_light.sh [--build DIR] [--out DIR] [--list] [--only WORDS] [--keep-going]
    tests/gpu/first_light.sh --gpus 8      two to eight GPUs (first_light_many.sh)
    tests/gpu/first_light.sh --small       all of it with small models, in a minute or two
    tests/gpu/first_light.sh --rehearse    the same on the CPU

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
from expectations import Outcome, complaints
from first_light_steps import MANY_GPUS, MINUTES, ONE_GPU, PROGRAMS, rehearsed, small

ROOT = pathlib.Path(__file__).resolve().parents[2]
NO_GPU = 77
TAIL_LINES = 15
WORD = re.compile(r"\{(\w+)\}")
FIGURES = ("ms_token", "tok_s", "mfu", "gb_s", "of_copy", "bus_gb_s", "all_gather_gb_s",
           "reduce_scatter_gb_s", "exchange_gb_s", "in_stream_gb_s", "step_median_s",
           "s_per_iter", "worst", "restarts")


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


def gpu_lines(what):
    """What nvidia-smi says of each GPU."""
    lines = said_by("nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits")
    return [line.strip() for line in lines.splitlines() if line.strip()]


def smallest_gb():
    """Memory of the smallest GPU; 0: not known."""
    known = [float(line) for line in gpu_lines("memory.total") if line.isdigit()]
    return min(known, default=0) * 2**20 / 1e9


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def facts(root, gpus):
    kept = root / "COMMIT"  # of a bundle
    commit = kept.read_text().strip() if kept.is_file() else \
        said_by("git", "-C", str(root), "rev-parse", "HEAD")
    driver = next(iter(gpu_lines("driver_version")), "")
    header = said_by("nvidia-smi")
    cuda = header.partition("CUDA Version:")[2].split()[:1]
    return {"commit": commit, "gpus": gpus, "driver": driver,
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

    def filled(self, word):
        return WORD.sub(lambda found: self.words[found[1]], word)

    def command(self, step):
        return [self.filled(word) for word in step.command]


def place_of(root, build, out, device, gpus):
    def program(name):
        """All are in one folder, as in a bundle, or tests in folders of their own."""
        places = [build / folder / name for folder in (".", "tests", "tests/gpu")]
        return next((place for place in places if place.exists()), places[1])

    words = {name: program(name) for name in (*PROGRAMS, "gpu_kernels_test")}
    words |= {"troupe": build / "troupe", "bench": build / "troupe-bench",
              "root": root, "python": sys.executable, "out": out, "device": device,
              "gpus": max(2, gpus)}
    tools = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin"
    environment = {**os.environ, "TROUPE_SOURCE": str(root), "OMP_WAIT_POLICY": "passive",
                   "PATH": f"{os.environ.get('PATH', os.defpath)}:{tools}"}
    if (root / "COMMIT").is_file():  # a bundle
        folders = [root / "lib", *torch_folders()]
        old = os.environ.get("LD_LIBRARY_PATH", "")
        environment["LD_LIBRARY_PATH"] = ":".join([*map(str, folders), *([old] if old else [])])
    return Place({name: str(word) for name, word in words.items()}, environment)


def missing(step, place, gpus, gpu_gb):
    """Why the step cannot run here; empty if it can. `gpu_gb` 0: not known."""
    for need in step.needs:
        kind, _, what = need.partition(" ")
        if kind in ("gpu", "gpus") and len(gpus) < int(what or 1):
            return f"needs {what or 'a'} GPU{'s' if what else ''}"
        if kind == "gpu_gb" and 0 < gpu_gb < float(what):
            return f"needs a GPU of {what} GB"
        path = place.environment.get("PATH")
        if kind == "program" and shutil.which(place.filled(what), path=path) is None:
            return f"no {pathlib.Path(place.filled(what)).name} on this machine"
        if kind == "package" and importlib.util.find_spec(what) is None:
            return f"no {what} in this Python"
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


def numbers_of(step, output, results):
    """Of the document of a step, with those of earlier steps that stand beside them."""
    numbers = last_document(output)
    for name, other, number in step.beside:
        for each in results:
            if each.name == other and number in each.numbers:
                numbers[name] = each.numbers[number]
    return numbers


def run_step(step, place, log, limit_s, gpu="", results=()):
    """Its result, and the end of its output if it is red."""
    environment = {**place.environment, **dict(each.split("=", 1) for each in step.environment)}
    begin = time.monotonic()
    code, output = run(place.command(step), environment, limit_s, log)
    result = Result(step.name, "green", round(time.monotonic() - begin, 2))
    tail = "\n".join(output.splitlines()[-TAIL_LINES:])
    result.numbers = numbers_of(step, output, results)
    outcome = Outcome(code, output, result.numbers, gpu)
    if code is None:  # what it has said until then counts
        found = complaints([text for text in step.expects if text.startswith("lacks ")], outcome)
        wrong = [f"cut after {limit_s:.0f} s", *found]
    else:
        found = wrong = complaints(step.expects, outcome)
    if wrong:
        result.state = "known red" if step.known_red else "red"
        if code is None and step.may_be_cut and not found:
            result.state = "cut"
        result.why = "; ".join([*wrong, *([step.known_red] if step.known_red else [])])
        return result, tail
    if short := complaints(step.aims, outcome):
        result.state, result.why = "below its aim", "; ".join(short)
    return result, ""


def run_all(steps, place, out, clock, gpus=(), keeps_going=False, gpu_gb=0):
    """Results of all steps; `clock`: seconds for all together, but those of other programs
    that ours stand beside."""
    end, results, stopped = time.monotonic() + clock, [], False
    for index, step in enumerate(steps, 1):
        why = missing(step, place, gpus, gpu_gb)
        left = step.limit_s if step.is_peer else end - time.monotonic()
        if stopped or left <= 0:
            results.append(Result(step.name, "not reached", why="" if stopped else "no time"))
            continue
        if why:
            results.append(Result(step.name, "skipped", why=why))
            continue
        print(f"{index:3}/{len(steps)} {step.name} (at most {step.limit_s} s)", flush=True)
        log = out / f"{index:02}.log"
        result, tail = run_step(step, place, log, min(step.limit_s, left),
                                gpus[0] if gpus else "", results)
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
    parser.add_argument("--patience", type=float, default=1, help="factor on all limits")
    parser.add_argument("--keep-going", action="store_true", help="after a red step too")
    parser.add_argument("--small", action="store_true", help="small models, no aims")
    parser.add_argument("--rehearse", action="store_true", help="the same on the CPU")
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
    if asked.rehearse or asked.small:
        steps = [rehearsed(step) if asked.rehearse else small(step) for step in steps]
    steps = [dataclasses.replace(step, limit_s=round(step.limit_s * asked.patience))
             for step in steps if asked.only in step.name]
    if asked.list or not steps:
        print("\n".join(f"{step.limit_s:4} s  {step.name}" for step in steps))
        return 0 if steps else 2
    build, out = asked.build.resolve(), asked.out.resolve()
    if not (build / "troupe").is_file():
        print(f"first_light: no programs in {build}; try --build DIR", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    gpus = [] if asked.rehearse else gpu_lines("name")[:asked.gpus]
    machine = facts(ROOT, gpus)
    print(" ".join(f"{name}={value}" for name, value in machine.items() if value))
    place = place_of(ROOT, build, out, "cpu" if asked.rehearse else "gpu", len(gpus))
    results = run_all(steps, place, out, 60 * asked.minutes, gpus, asked.keep_going,
                      smallest_gb())
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
