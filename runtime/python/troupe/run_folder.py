"""A run's folder: its numbers, samples, checkpoints, settings and state, as the
files of docs/interface.md have them. Reads files and nothing else: it works while
the run goes on, and where no program is."""
from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import pathlib
import re
import struct
from collections.abc import Container, Iterator
from typing import Any

from .program import Path
from .written_yaml import read_yaml

__all__ = ["Checkpoint", "RunFolder", "RunStatus", "Sample", "load_samples"]

_STEP = re.compile(rb'\{"step":\s*(\d+)')


@dataclasses.dataclass(frozen=True)
class Sample:
    """A line of samples.jsonl. What a workflow does not compute is None."""
    step: int
    sample: int
    prompt: str
    response: str
    sequence_ids: list[int]
    loss_mask: list[int]  #: 1: the model's own token
    logprobs: list[float] | None = None
    ref_logprobs: list[float] | None = None
    advantages: list[float] | None = None
    score: float | None = None
    kl: float | None = None
    finish_reason: str | None = None
    document: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def response_ids(self) -> list[int]:
        """The tokens that the model wrote itself."""
        return [token for token, own in zip(self.sequence_ids, self.loss_mask)
                if own]


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint: a Hugging Face folder for each role."""
    step: int
    path: pathlib.Path

    @property
    def roles(self) -> dict[str, pathlib.Path]:
        """The folder of each role that was saved."""
        return {folder.name: folder for folder in sorted(self.path.iterdir())
                if (folder / "config.json").is_file()}


@dataclasses.dataclass(frozen=True)
class RunStatus:
    """What status.json says; `lost` for a run that says it is under way although
    its process is gone."""
    state: str
    step: int
    steps: int
    attempt: int
    eta_s: float | None
    workers: list[dict[str, Any]]
    last_failure: str | None
    document: dict[str, Any] = dataclasses.field(repr=False)


def _lines(file: pathlib.Path) -> Iterator[bytes]:
    """Yields whole lines: the last one may be in the making."""
    try:
        with file.open("rb") as lines:
            yield from (line for line in lines if line.endswith(b"\n"))
    except FileNotFoundError:
        return


def _is_locked(file: pathlib.Path) -> bool:
    """Whether another process holds the lock of a run's master."""
    try:
        with file.open("rb") as opened:
            wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            told = fcntl.fcntl(opened, fcntl.F_GETLK, wanted)
            return bool(struct.unpack("hhqqi4x", told)[0] != fcntl.F_UNLCK)
    except FileNotFoundError:
        return False


class RunFolder:
    """Reads the folder of a run, `runs/NAME`."""

    def __init__(self, path: Path):
        self.path = pathlib.Path(path)
        if not (self.path / "config.yaml").is_file():
            raise FileNotFoundError(f"{self.path}: expected a run's folder, which "
                                    "has config.yaml; got none")

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The run's name."""
        return self.path.resolve().name

    @property
    def config(self) -> dict[str, Any]:
        """All settings, those with their defaults too."""
        return read_yaml((self.path / "config.yaml").read_text("utf-8"))

    @property
    def plan(self) -> dict[str, Any]:
        """The plan of the newest start."""
        return read_yaml((self.path / "plan.yaml").read_text("utf-8"))

    @property
    def status(self) -> RunStatus:
        """The state, the step and the workers as the run wrote them last."""
        found = json.loads((self.path / "status.json").read_text("utf-8"))
        names = {field.name for field in dataclasses.fields(RunStatus)}
        known = {name: value for name, value in found.items() if name in names}
        under_way = ("starting", "running", "recovering", "stopping")
        if known["state"] in under_way and not _is_locked(self.path / ".lock"):
            known["state"] = "lost"
        return RunStatus(**known, document=found)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The numbers of each step, in order. A step that was told twice has its
        last line."""
        found = (json.loads(line) for line in _lines(self.path / "metrics.jsonl"))
        steps = {line["step"]: line for line in found}
        return [steps[step] for step in sorted(steps)]

    @property
    def failures(self) -> list[dict[str, Any]]:
        """What failed, and what was done about it."""
        return [json.loads(line) for line in _lines(self.path / "failures.jsonl")]

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The complete checkpoints, oldest first."""
        found = [Checkpoint(int(manifest.parent.name.removeprefix("step_")),
                            manifest.parent)
                 for manifest in self.path.glob("checkpoints/step_*/manifest.json")
                 if manifest.parent.name.removeprefix("step_").isdigit()]
        return sorted(found, key=lambda one: one.step)

    @property
    def latest(self) -> Checkpoint | None:
        """The newest checkpoint."""
        return (self.checkpoints or [None])[-1]  # type: ignore[list-item]

    @property
    def best(self) -> Checkpoint | None:
        """The best checkpoint, with `run.keep_best`."""
        link = (self.path / "best").resolve()
        return next((one for one in self.checkpoints
                     if one.path.resolve() == link), None)

    def samples(self, step: int | Container[int] | None = None
                ) -> Iterator[Sample]:
        """Yields the samples of a step, of steps (`range(10, 20)`) or of all, one
        at a time: the file of a long run is larger than memory."""
        wanted = [step] if isinstance(step, int) else step
        for line in _lines(self.path / "samples.jsonl"):
            begins = _STEP.match(line)
            if wanted is not None and begins and int(begins[1]) not in wanted:
                continue
            found = json.loads(line)
            if wanted is None or found["step"] in wanted:
                yield _sample(found)


def _sample(line: dict[str, Any]) -> Sample:
    names = {field.name for field in dataclasses.fields(Sample)}
    return Sample(**{name: value for name, value in line.items()
                     if name in names}, document=line)


def load_samples(run: Path | RunFolder, step: int | Container[int] | None = None
                 ) -> list[Sample]:
    """Returns the samples of a run, of one of its steps or of several."""
    folder = run if isinstance(run, RunFolder) else RunFolder(run)
    return list(folder.samples(step))
