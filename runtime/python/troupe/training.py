"""A run of `troupe train` that Python started: its numbers step by step, and its
end. The run is a process of its own; it is stopped as Ctrl-C stops it, so a
checkpoint is saved first and the same call goes on from it."""
from __future__ import annotations

import atexit
import os
import pathlib
import signal
import subprocess
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

from .errors import TroupeError, error_of
from .metrics_follower import MetricsFollower
from .program import Config, Overrides, Path, environment_of, find_program, words_of
from .program_output import ProgramOutput
from .run_folder import RunFolder

__all__ = ["Training", "train"]

_POLL_S = 0.05         # between two looks at metrics.jsonl
_SECOND_SIGNAL_S = 10  # a second interrupt ends the program at once
_running: weakref.WeakSet[Training] = weakref.WeakSet()


class Training(Iterator[dict[str, Any]]):
    """The metrics of a run, one dict per step, while it goes on."""

    def __init__(self, words: list[str], folder: Path | None,
                 environment: Mapping[str, str] | None,
                 on_message: Callable[[str], None] | None):
        self._closed = False
        self._begin = pathlib.Path(folder or os.getcwd())
        self._follower: MetricsFollower | None = None
        self._process = subprocess.Popen(
            [*words, "--json"], cwd=folder, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment_of(words[0], environment),
            start_new_session=True)  # a terminal's Ctrl-C comes here alone
        self._output = ProgramOutput(self._process, on_message)
        _running.add(self)

    # -- the steps -------------------------------------------------------------

    def __iter__(self) -> Training:
        return self

    def __next__(self) -> dict[str, Any]:
        try:
            return self._next()
        except BaseException:  # also KeyboardInterrupt
            self.close()
            raise

    def _next(self) -> dict[str, Any]:
        if self._closed:
            raise StopIteration
        document = self._checked()
        if self._follower is None:
            self._follower = MetricsFollower(
                self._path(), self._process.pid, document["first_step"])
        while True:
            ended = self._process.poll() is not None  # before the last look
            line = self._follower.next()
            if line is not None:
                return line
            if ended:
                break
            self._ends_within(_POLL_S)
        if self._process.returncode != 0:
            raise self._error()
        raise StopIteration

    def _checked(self) -> dict[str, Any]:
        """Returns what the program says before it begins; throws its mistakes."""
        document = self._output.document()
        if document is None:
            raise self._error()
        return document

    def _path(self) -> pathlib.Path:
        return self._begin / str(self._checked()["run_folder"])

    def _ends_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False

    def _error(self) -> TroupeError:
        self._process.wait()
        return error_of(self._process.returncode, self._output.messages())

    # -- the run ---------------------------------------------------------------

    @property
    def folder(self) -> RunFolder:
        """The folder of the run, once its settings were checked."""
        path = self._path()
        while not (path / "config.yaml").is_file():
            if self._ends_within(_POLL_S):
                break
        return RunFolder(path)

    @property
    def resumed(self) -> str:
        """What is said of a run that goes on, such as `continuing after step 3
        of 4`; empty for a new one."""
        return str(self._checked()["resume"])

    @property
    def pid(self) -> int:
        """The process of the master."""
        return self._process.pid

    def wait(self) -> RunFolder:
        """Waits for the end, without the numbers; raises what went wrong."""
        for _ in self:
            pass
        return self.folder

    def close(self) -> None:
        """Stops the run as Ctrl-C would: it saves a checkpoint and ends. Does
        nothing to a run that has ended."""
        self._closed = True
        _running.discard(self)
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait()
            except KeyboardInterrupt:  # the second one of an impatient person
                self._process.send_signal(signal.SIGINT)
                if not self._ends_within(_SECOND_SIGNAL_S):
                    self._process.kill()
                    self._process.wait()
                raise
        self._output.close()

    def __enter__(self) -> Training:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_output"):
            self.close()


def _close_all() -> None:
    for one in list(_running):
        one.close()


atexit.register(_close_all)


def train(config: Config, overrides: Overrides | None = None, *,
          program: Path | None = None, folder: Path | None = None,
          environment: Mapping[str, str] | None = None,
          on_message: Callable[[str], None] | None = None) -> Training:
    """Runs `troupe train` and yields the metrics of each step.

        for metrics in troupe.train("run.yaml", {"run.steps": 20}):
            print(metrics["step"], metrics["critic/score/mean"])

    Wrong settings raise ConfigError, a plan that cannot run PlanError, with the
    program's own sentences. Ctrl-C, an early `close()`, the end of a `with` and
    dropping the object stop the run with a checkpoint. A step that is told again,
    after a lost worker, comes again: its last line counts.

    `program` is another program than `troupe`, with workflows of its own;
    `folder` is where relative paths begin; `environment` is added to that of the
    run; `on_message` gets each line that the program writes on stderr."""
    chosen = find_program() if program is None else os.fspath(program)
    return Training([chosen, "train", *words_of(config, overrides)], folder,
                    environment, on_message)
