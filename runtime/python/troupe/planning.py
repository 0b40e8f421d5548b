"""The plan commands as functions: each runs `troupe plan ... --json` and returns
its document as a dataclass. `document` has the whole of it, also what later
versions add."""
from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from .errors import error_of
from .program import Config, Overrides, Path, document_of, find_planner, words_of

__all__ = ["ComparedPlan", "DeviceMemory", "DeviceTime", "FoundPlan",
           "PlanCheck", "PlanComparison", "PlanMistake", "PlanSearch",
           "PlanSimulation", "Staleness", "Task", "plan_check", "plan_compare",
           "plan_search", "plan_simulate"]

_T = TypeVar("_T")


def _of(kind: type[_T], values: Mapping[str, Any], **parts: Any) -> _T:
    """Returns the dataclass of these values; fields it does not name stay out."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    known = {name: value for name, value in values.items() if name in names}
    return kind(**{**known, **parts})


def _all(kind: type[_T], values: Iterable[Mapping[str, Any]]) -> list[_T]:
    return [_of(kind, value) for value in values]


@dataclasses.dataclass(frozen=True)
class PlanMistake:
    """A reason why a plan cannot run."""
    path: str     #: `calls.actor_train`
    message: str  #: expected ..., got ...; try ...


@dataclasses.dataclass(frozen=True)
class DeviceMemory:
    """The peak memory of a device, and the task in which it is reached."""
    device: int
    peak_bytes: int
    at_task: str
    kind: str = ""  #: of its node, where nodes differ


@dataclasses.dataclass(frozen=True)
class PlanCheck:
    """What `troupe plan check` found."""
    ok: bool
    errors: list[PlanMistake]
    warnings: list[str]
    devices: list[DeviceMemory]
    document: dict[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of the predicted step."""
    name: str
    call: str
    step: int
    start_s: float
    end_s: float
    devices: list[int]


@dataclasses.dataclass(frozen=True)
class DeviceTime:
    """How a device spends the predicted step."""
    device: int
    busy_s: float
    idle_s: float
    peak_bytes: int
    peak_task: str = ""
    kind: str = ""


@dataclasses.dataclass(frozen=True)
class PlanSimulation:
    """What `troupe plan simulate` predicts of a step."""
    plan: str
    step_s: float
    idle_share: float
    idle_s: dict[str, float]
    critical_path: list[str]
    tasks: list[Task]
    devices: list[DeviceTime]
    moved_bytes: float
    document: dict[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class FoundPlan:
    """A plan file's text and the seconds of its predicted step."""
    step_s: float
    plan: str


@dataclasses.dataclass(frozen=True)
class Staleness:
    """What a step buys whose weights are `steps` old."""
    steps: int
    fits: bool
    chosen: bool
    step_s: float | None = None
    steps_per_hour: float | None = None
    tokens_per_s: float | None = None
    gain: float | None = None
    plan: str | None = None


@dataclasses.dataclass(frozen=True)
class PlanSearch:
    """What `troupe plan search` found and proved; `plan` is a plan file's text."""
    step_s: float
    lower_bound_s: float
    gap: float
    method: str
    proved: bool
    note: str
    evaluations: int
    seconds: float
    plan: str
    next: list[FoundPlan]
    staleness: list[Staleness]
    document: dict[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class ComparedPlan:
    """A row of `troupe plan compare`; numbers of a plan that does not fit, and
    what was not measured, are None."""
    workload: str
    plan: str
    fits: bool
    reason: str
    own: bool = False
    step_s: float | None = None
    pflops: float | None = None
    tokens_per_s_device: float | None = None
    idle_share: float | None = None
    peak_bytes: int | None = None
    peak_task: str | None = None
    moved_bytes: float | None = None
    measured_s: float | None = None
    error: float | None = None


@dataclasses.dataclass(frozen=True)
class PlanComparison:
    """The rows of `troupe plan compare`."""
    rows: list[ComparedPlan]
    document: dict[str, Any] = dataclasses.field(repr=False)

    @property
    def best(self) -> ComparedPlan | None:
        """The fastest plan that fits."""
        fits = [row for row in self.rows if row.fits and row.step_s is not None]
        return min(fits, key=lambda row: row.step_s or 0, default=None)


@contextlib.contextmanager
def _plan_options(plan: Path | None) -> Iterator[list[str]]:
    """Yields --plan FILE; a text with lines becomes a file as long as it is needed."""
    if plan is None:
        yield []
    elif isinstance(plan, str) and "\n" in plan:
        with tempfile.TemporaryDirectory(prefix="troupe-plan-") as folder:
            file = pathlib.Path(folder) / "plan.yaml"
            file.write_text(plan, encoding="utf-8")
            yield ["--plan", str(file)]
    else:
        yield ["--plan", os.fspath(plan)]


def _options(**options: Any) -> list[str]:
    """Returns --name value of each option that is set."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words += [option, str(value)]
    return words


def _run(command: str, config: Config, overrides: Overrides | None,
         plan: Path | None, options: list[str], fine: Iterable[int] = (0,)
         ) -> dict[str, Any]:
    with _plan_options(plan) as plan_options:
        return document_of([*find_planner(), command,
                            *words_of(config, overrides), *plan_options, *options],
                           fine=fine)


def plan_check(config: Config, overrides: Overrides | None = None, *,
               plan: Path | None = None, preset: str | None = None,
               hardware: Path | None = None, published: bool = False,
               response_tokens: str | None = None) -> PlanCheck:
    """Returns every reason why the plan cannot run, or the peak memory of its
    devices. `plan` is a file or a plan's text. A plan that cannot run is a result;
    wrong settings are raised as ConfigError."""
    found = _run("check", config, overrides, plan,
                 _options(preset=preset, hardware=hardware, published=published,
                          response_tokens=response_tokens), fine=(0, 2, 3))
    return _of(PlanCheck, found, errors=_all(PlanMistake, found["errors"]),
               devices=_all(DeviceMemory, found["devices"]), document=found)


def plan_simulate(config: Config, overrides: Overrides | None = None, *,
                  plan: Path | None = None, preset: str | None = None,
                  hardware: Path | None = None, published: bool = False,
                  response_tokens: str | None = None, html: Path | None = None
                  ) -> PlanSimulation:
    """Predicts a step: tasks, devices, idle time, critical path. `html` names a
    file for a page with the pictures."""
    found = _run("simulate", config, overrides, plan,
                 _options(preset=preset, hardware=hardware, published=published,
                          response_tokens=response_tokens, html=html))
    return _of(PlanSimulation, found, tasks=_all(Task, found["tasks"]),
               devices=_all(DeviceTime, found["devices"]), document=found)


def plan_search(config: Config, overrides: Overrides | None = None, *,
                hardware: Path | None = None, published: bool = False,
                response_tokens: str | None = None, method: str | None = None,
                seconds: float | None = None, iterations: int | None = None,
                seed: int | None = None, chunks: bool = False,
                lag: Mapping[str, int] | None = None) -> PlanSearch:
    """Finds a plan, and says how good it is and what is proved of it."""
    options = _options(hardware=hardware, published=published,
                       response_tokens=response_tokens, method=method,
                       seconds=seconds, iterations=iterations, seed=seed,
                       chunks=chunks)
    for call, steps in (lag or {}).items():
        options += ["--lag", f"{call}={steps}"]
    found = _run("search", config, overrides, None, options)
    return _of(PlanSearch, found, next=_all(FoundPlan, found["next"]),
               staleness=_all(Staleness, found["staleness"]), document=found)


def plan_compare(config: Config, overrides: Overrides | None = None, *,
                 presets: Iterable[str] | None = None,
                 hardware: Path | None = None, published: bool = False,
                 response_tokens: str | None = None, html: Path | None = None
                 ) -> PlanComparison:
    """Predicts presets, the search and the settings' own plan side by side."""
    listed = None if presets is None else ",".join(presets)
    if listed == "":
        raise error_of(2, "error: presets: expected one name at least, got none")
    found = _run("compare", config, overrides, None,
                 _options(presets=listed, hardware=hardware, published=published,
                          response_tokens=response_tokens, html=html))
    return PlanComparison(rows=_all(ComparedPlan, found["rows"]), document=found)
