"""What a command of Troupe ended with, as exceptions. Each has the program's own
sentences (FILE:LINE, path, expected, got, what to try) and its exit code, which
docs/interface.md lists."""
from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ConfigError", "PlanError", "ProgramMissing", "RunFailed",
           "RunInterrupted", "RunStopped", "TroupeError"]


class TroupeError(Exception):
    """A command that did not end with 0."""

    def __init__(self, errors: Sequence[str], code: int, stderr: str = ""):
        self.errors = list(errors)  #: one sentence for each mistake
        self.code = code            #: exit code; -N: killed by signal N
        self.stderr = stderr        #: the end of what the program said
        super().__init__("\n".join(self.errors))


class ConfigError(TroupeError):
    """Wrong settings, names or input files (exit code 2)."""


class PlanError(TroupeError):
    """A plan that cannot run: arithmetic, devices or memory (exit code 3)."""


class RunFailed(TroupeError):
    """The world failed: a port in use, a full disk, a lost worker (exit code 1)."""


class RunStopped(TroupeError):
    """Somebody else asked the run to stop: `troupe stop`, TERM or run.max_time.
    It has saved a checkpoint, and the same call goes on from it (exit code 75)."""


class RunInterrupted(RunStopped):
    """The run got an interrupt that did not come from here (exit code 130)."""


class ProgramMissing(TroupeError):
    """No program of Troupe is installed here."""

    def __init__(self, sentence: str):
        super().__init__([sentence], 127)


_BY_CODE = {2: ConfigError, 3: PlanError, 75: RunStopped, 130: RunInterrupted}


def error_of(code: int, stderr: str) -> TroupeError:
    """Returns the exception for an exit code and what was said on stderr."""
    said = stderr.splitlines()
    errors = [line.removeprefix("error: ") for line in said
              if line.startswith("error: ")]
    if not errors:
        what = f"signal {-code}" if code < 0 else f"exit code {code}"
        errors = [f"the program ended with {what}", *said[-5:]]
    return _BY_CODE.get(code, RunFailed)(errors, code, stderr)
