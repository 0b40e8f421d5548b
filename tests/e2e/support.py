"""Helpers of the end-to-end tests: the binary under test, a folder of tiny data
made once a test file, runs with deadlines, and proof that no process is left."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
import uuid

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(
    os.environ.get("TROUPE_BUILD", SOURCE / "build")).resolve()
TROUPE = BUILD / "troupe"
TINY = SOURCE / "examples/tiny"
# not this machine's numbers: what a profile looks like
PROFILE = """name: of a test
device: {gemm_flops: 5e10, attn_flops: 2e10, mem_Bps: 1e10}
host: {launch_layer_s: 2e-5, call_s: 1e-3}
links: {intra_Bps: 1e9, intra_lat_s: 1e-4, inter_Bps: 1e9, inter_lat_s: 1e-4,
  host_Bps: 1e9, zero_Bps: 1e9}
"""
DEADLINE_S = 90  # of one command; CI machines are slow, hangs are not
POLL_S = 0.02    # between two looks at a file or process that we wait for


# else learning rates depend on the number of steps
CONSTANT = [f"models.{role}.optimizer.schedule=constant"
            for role in ("actor", "critic")]


class Deadline:
    """That of a whole file, which ctest gives. The test that runs then fails,
    with what it waits for and what its processes have said; those that follow
    fail at once."""
    passed = False

    @classmethod
    def begin(cls, seconds):
        signal.signal(signal.SIGALRM, cls.end)
        signal.alarm(seconds)

    @classmethod
    def end(cls, _, frame):
        cls.passed = True
        print("the deadline of this file has passed here:", file=sys.stderr)
        traceback.print_stack(frame)
        cls.check()

    @classmethod
    def check(cls):
        if cls.passed:
            raise AssertionError("the deadline of this file has passed")


if "TROUPE_DEADLINE_S" in os.environ:
    Deadline.begin(int(os.environ["TROUPE_DEADLINE_S"]))


def until(condition, what, seconds=DEADLINE_S):
    """Waits for `condition()` to be true and returns what it returned."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        Deadline.check()  # a subTest may have caught what it raised
        if found := condition():
            return found
        time.sleep(POLL_S)
    raise AssertionError(f"not within {seconds} s: {what}")


def with_numpy():
    """The folder of a python3 that has numpy, or None."""
    venvs = [os.environ.get("TROUPE_TRACKERS", SOURCE / ".deps/trackers"),
             SOURCE / ".deps/golden"]
    for folder in [pathlib.Path(venv) / "bin" for venv in venvs] + [
            pathlib.Path(shutil.which("python3")).parent]:
        found = subprocess.run([folder / "python3", "-c", "import numpy"],
                               capture_output=True) if (
                                   folder / "python3").exists() else None
        if found and found.returncode == 0:
            return folder
    return None


def read_rows(file):
    with open(file, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_rows(file, rows):
    pathlib.Path(file).write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_scorer(base, folder):
    """A copy of the model folder `base` with a random scalar head, so that
    scores and values differ between responses."""
    shutil.copytree(base, folder)
    config = json.loads((base / "config.json").read_text())
    config |= {"architectures": ["LlamaForSequenceClassification"],
               "num_labels": 1}
    (folder / "config.json").write_text(json.dumps(config))
    stored = (base / "model.safetensors").read_bytes()
    length, = struct.unpack("<Q", stored[:8])
    header, data = json.loads(stored[8:8 + length]), stored[8 + length:]
    begin, _ = header.pop("lm_head.weight")["data_offsets"]  # the last one
    draw, width = random.Random(1), config["hidden_size"]
    head = struct.pack(f"<{width}f", *(draw.gauss(0, 0.3) for _ in range(width)))
    data = data[:begin] + head
    header["score.weight"] = {"dtype": "F32", "shape": [1, width],
                              "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + data)


def tree_bytes(folder, pattern="**/*"):
    """{relative path: bytes} of a folder's files."""
    return {str(file.relative_to(folder)): file.read_bytes()
            for file in sorted(folder.glob(pattern)) if file.is_file()}


class Process:
    """A troupe process that runs beside the test. What it says goes to files: a
    pipe that nobody reads would be full after some hundred steps."""

    def __init__(self, case, arguments, program=TROUPE):
        self.case, self.begin = case, time.monotonic()
        self.out = self.err = None
        self.folder = tempfile.TemporaryDirectory(prefix="troupe-said-")
        self.files = [pathlib.Path(self.folder.name) / name
                      for name in ("stdout", "stderr")]
        with open(self.files[0], "ab") as out, open(self.files[1], "ab") as err:
            self.popen = subprocess.Popen(
                [str(program), *map(str, arguments)], cwd=case.folder,
                env=case.environment, stdout=out, stderr=err,
                start_new_session=True)
        case.started.append(self)

    def send(self, number):
        self.popen.send_signal(number)

    def finish(self, seconds=DEADLINE_S):
        """Waits for the end; the process with code, out and err."""
        try:
            self.popen.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
            raise AssertionError(f"still running after {seconds} s\n"
                                 + "\n".join(self.said()))
        self.out, self.err = self.said()
        self.folder.cleanup()
        self.code = self.popen.returncode
        return self

    def said(self):
        """Its standard output and error so far."""
        return [file.read_text() for file in self.files]

    def show(self):
        """Prints what it said if nobody has waited for its end: a test that failed
        while it ran says nothing else of it."""
        if self.out is None:
            print(f"{self.popen.args[1:3]} said:", *self.said(), sep="\n")

    def wait_for_line(self, pattern, seconds=DEADLINE_S):
        """Waits for a whole line of standard output that matches from its start."""
        def found():
            if self.popen.poll() is not None:
                ended.append(self.popen.returncode)
            lines = [line for line in self.files[0].read_text().splitlines(True)
                     if line.endswith("\n") and re.match(pattern, line)]
            return lines[0] if lines else ended
        ended = []
        line = until(found, f"a line {pattern}", seconds)
        if line is ended:
            raise AssertionError(f"ended without a line {pattern}: {self.said()}")
        return re.match(pattern, line)


class Case(unittest.TestCase):
    """A test with its own folder, which holds data/ (tiny_data's output)."""

    @classmethod
    def setUpClass(cls):
        cls.shared_folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-e2e-"))
        subprocess.run([BUILD / "tiny_data", "--out", cls.shared_folder],
                       check=True, stdout=subprocess.DEVNULL)
        make_scorer(cls.shared_folder / "base", cls.shared_folder / "scorer")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared_folder)

    def setUp(self):
        Deadline.check()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-e2e-"))
        (self.folder / "data").symlink_to(self.shared_folder)
        self.mark = f"TROUPE_E2E={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        # never the user's own cache; a profile there, so that no run measures
        self.cache = pathlib.Path(tempfile.mkdtemp(prefix="troupe-e2e-cache-"))
        self.environment = {**os.environ, name: value,
                            "XDG_CACHE_HOME": str(self.cache)}
        self.cached_profile(PROFILE)
        self.started = []

    def tearDown(self):
        shutil.rmtree(self.cache)
        left = self.processes()
        for process in self.started:
            process.show()
        for pid in [*left, *self.keepers()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if left or os.environ.get("TROUPE_E2E_KEEP"):
            print("kept:", self.folder)
        else:
            shutil.rmtree(self.folder)
        self.assertEqual(left, {}, "processes left over")

    def cached_profile(self, text):
        """Returns the profile that `plan: auto` finds."""
        self.cached_hardware = self.cache / "troupe/hardware.yaml"
        self.cached_hardware.parent.mkdir(exist_ok=True)
        self.cached_hardware.write_text(text)

    # -- processes -----------------------------------------------------------

    def processes(self):
        """{pid: command line} of every live process of this test but keepers,
        which wait for a run that was killed to be started again."""
        return {pid: words for pid, words in self.all_processes().items()
                if " keeper " not in words}

    def keepers(self):
        return sorted(pid for pid, words in self.all_processes().items()
                      if " keeper " in words)

    def all_processes(self):
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if self.mark.encode() in (entry / "environ").read_bytes():
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    found[int(entry.name)] = b" ".join(words).decode()
        return found

    def workers(self):
        return sorted(pid for pid, words in self.processes().items()
                      if " worker " in words)

    def start(self, *arguments):
        return Process(self, arguments)

    def troupe(self, *arguments, code=0, text_in=None, seconds=DEADLINE_S):
        """Runs to the end and checks the exit code."""
        Deadline.check()
        try:
            done = subprocess.run(
                [str(TROUPE), *map(str, arguments)], cwd=self.folder,
                env=self.environment, input=text_in, capture_output=True,
                text=True, timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise AssertionError("\n".join([
                f"still running after {seconds} s: {arguments}",
                *(said.decode(errors="replace")
                  for said in (late.stdout, late.stderr) if said)])) from None
        self.assertEqual(done.returncode, code,
                         f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    # -- runs ----------------------------------------------------------------

    def sft(self, *overrides):
        """Arguments of a small SFT run named `sft` on two workers."""
        return ["train", TINY / "sft.yaml", "run.name=sft", "run.steps=3",
                "models.actor.path=data/base", "data.train=data/sft.jsonl",
                "data.batch_size=8", *overrides]

    def ppo(self, *overrides):
        """Arguments of a small PPO run named `ppo`: every role untrained."""
        models = [f"models.{role}.path=data/{folder}" for role, folder in
                  (("actor", "base"), ("ref", "base"),
                   ("critic", "scorer"), ("reward", "scorer"))]
        return ["train", TINY / "ppo.yaml", "run.name=ppo", "run.steps=3",
                *models, "data.train=data/prompts.jsonl", "data.batch_size=16",
                "rollout.max_new_tokens=12", "run.save_every=0",
                f"plan={TINY}/plans/groups.yaml", *overrides]

    def run_folder(self, name):
        return self.folder / "runs" / name

    def metrics(self, name):
        """{step: line}; the last line of a step wins."""
        rows = read_rows(self.run_folder(name) / "metrics.jsonl")
        return {row["step"]: row for row in rows}

    def wait_for_step(self, name, step, seconds=DEADLINE_S):
        """Waits until the run has written its whole line of `step`."""
        file = self.run_folder(name) / "metrics.jsonl"
        pattern = re.compile(rf'"step": ?{step}\b.*\n')
        until(lambda: file.exists() and pattern.search(file.read_text()),
              f"step {step} of {name}", seconds)

    def wait_for_checkpoint(self, name):
        """Waits until a checkpoint is committed, which is some time after its
        step: files are written after the run."""
        until(lambda: self.latest(name).is_dir(), f"a checkpoint of {name}")

    def trace_events(self, name):
        self.troupe("trace", "export", f"runs/{name}")
        file = self.run_folder(name) / "trace.json"
        return json.loads(file.read_text())["traceEvents"]

    def counters(self, name, what):
        """Values of a counter over time, a list per device."""
        found = {}
        for event in self.trace_events(name):
            if event["ph"] == "C" and what in event["name"]:
                found.setdefault((event["pid"], event["name"]), []).append(
                    (event["ts"], *event["args"].values()))
        return [[value for _, value in sorted(points)]
                for points in found.values()]

    def slices(self, name):
        """The slices of a run's trace: name, track, step, amount, begin and end
        in us."""
        events = self.trace_events(name)
        tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
                  if e["ph"] == "M" and e["name"] == "thread_name"}
        return [{"name": e["name"], "track": tracks[e["pid"], e["tid"]],
                 "step": e["args"]["step"], "amount": e["args"]["amount"],
                 "begin": e["ts"], "end": e["ts"] + e["dur"]}
                for e in events if e["ph"] == "X"]

    def outcome(self, name):
        """What a run has computed: weights, metrics without times, samples."""
        samples = self.run_folder(name) / "samples.jsonl"
        return (tree_bytes(self.latest(name), "*/model.safetensors"),
                {step: without_times(line)
                 for step, line in self.metrics(name).items()},
                read_rows(samples) if samples.exists() else [])

    def assert_alike(self, what, one, other):
        """Two runs' numbers, {step: line}, are equal but for rounding (I1)."""
        self.assertEqual(sorted(one), sorted(other), what)
        for step, line in one.items():
            with self.subTest(what, step=step):
                for key, want in line.items():
                    self.assertAlmostEqual(
                        other[step][key], want, msg=key,
                        delta=1e-4 * max(1e-1, abs(want)))

    def failures(self, name="ppo"):
        return read_rows(self.run_folder(name) / "failures.jsonl")

    def status(self, name="ppo"):
        file = self.run_folder(name) / "status.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def latest(self, name):
        return (self.run_folder(name) / "latest").resolve()


def without_times(line):
    """A metrics line less what a clock or a memory meter measured, and what
    recoveries count."""
    measured = ("timing_s/", "perf/", "training/attempt", "training/restarts",
                "training/lost_steps")
    return {key: value for key, value in line.items()
            if not key.startswith(measured)}
