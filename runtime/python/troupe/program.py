"""Finds the program and runs its commands. `troupe` and `troupe-plan` come with
the wheels; a package that is used from the repository takes those of build/."""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Union

from .errors import ProgramMissing, error_of

__all__ = ["Config", "Overrides", "environment_of", "find_program", "main",
           "plan_main", "words_of"]

Path = Union[str, "os.PathLike[str]"]
#: Files that are merged from left to right, or a run folder.
Config = Union[Path, Iterable[Path]]
#: `{"run.steps": 5}`, nested as the YAML is or not, or `["run.steps=5"]`.
Overrides = Union[Mapping[str, Any], Iterable[str]]

_HERE = pathlib.Path(__file__).resolve().parent
_VARIABLES = {"troupe": "TROUPE_PROGRAM", "troupe-plan": "TROUPE_PLAN_PROGRAM"}


def _package_places(name: str) -> Iterable[pathlib.Path]:
    if given := os.environ.get(_VARIABLES[name]):
        yield pathlib.Path(given)
        return
    yield _HERE / "bin" / name
    if (_HERE.parent / "pyproject.toml").is_file():  # this is the repository
        yield _HERE.parents[2] / "build" / name


def _package_program(name: str) -> str | None:
    for place in _package_places(name):
        if os.access(place, os.X_OK) and place.is_file():
            return str(place)
    return None


def find_program(name: str = "troupe") -> str:
    """Returns the path of `troupe` or `troupe-plan`. Looks at TROUPE_PROGRAM (or
    TROUPE_PLAN_PROGRAM), into the package, then along PATH."""
    found = _package_program(name)
    if found is None and not os.environ.get(_VARIABLES[name]):
        found = shutil.which(name)
    if found is None:
        raise ProgramMissing(
            f"no program {name}: expected it in the package, in "
            f"{_VARIABLES[name]} or along PATH; try `make build` in the "
            "repository, or the wheel that has it (docs/python.md)")
    return found


def find_planner() -> list[str]:
    """Returns the first words of a plan command."""
    for name, words in (("troupe", ["plan"]), ("troupe-plan", [])):
        try:
            return [find_program(name), *words]
        except ProgramMissing:
            continue
    return [find_program("troupe-plan")]


def environment_of(program: str, added: Mapping[str, str] | None = None
                   ) -> dict[str, str]:
    """Returns the environment of a program. Ours finds libtorch beside itself; a
    torch in another folder of Python's path is named to the loader."""
    environment = {**os.environ, **(added or {})}
    bundled = _HERE / "bin" / "troupe"
    beside = _HERE.parent / "torch" / "lib"
    if pathlib.Path(program) != bundled or beside.is_dir():
        return environment
    spec = importlib.util.find_spec("torch")  # does not import it
    for folder in spec.submodule_search_locations or () if spec else ():
        library = pathlib.Path(folder) / "lib"
        if library.is_dir():
            rest = environment.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = os.pathsep.join(
                [str(library), *([rest] if rest else [])])
            return environment
    raise ProgramMissing("no libtorch: expected the package torch beside troupe; "
                         "try `pip install torch==2.11.0`")


def _value_text(value: Any) -> str:
    """Returns the YAML of a value; text is taken as it is."""
    if isinstance(value, os.PathLike):
        return str(value)
    return value if isinstance(value, str) else json.dumps(value)


def _override_words(overrides: Mapping[str, Any], prefix: str = ""
                    ) -> Iterable[str]:
    for key, value in overrides.items():
        if isinstance(value, Mapping) and value:
            yield from _override_words(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}={_value_text(value)}"


def words_of(config: Config, overrides: Overrides | None) -> list[str]:
    """Returns CONFIG... [key=value ...] of a command line."""
    files = [config] if isinstance(config, (str, os.PathLike)) else list(config)
    words = [os.fspath(file) for file in files]
    if isinstance(overrides, str):
        raise TypeError(f"overrides: expected a list or a mapping, got the text "
                        f"{overrides!r}; try [{overrides!r}]")
    if isinstance(overrides, Mapping):
        return words + list(_override_words(overrides))
    return words + list(overrides or ())


def document_of(words: list[str], folder: Path | None = None,
                fine: Iterable[int] = (0,)) -> dict[str, Any]:
    """Runs a command with --json and returns its document; an exit code that is
    not `fine` is raised."""
    done = subprocess.run([*words, "--json"], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment_of(words[0]), check=False)
    if done.returncode in fine and done.stdout:
        return json.loads(done.stdout)  # type: ignore[no-any-return]
    raise error_of(done.returncode, done.stderr)


def _become(name: str) -> None:
    """Runs the program in place of this process, so that signals and exit codes
    are its own. Never one of PATH, which may be this script."""
    program = _package_program(name)
    if program is None:
        sys.exit(f"error: no program {name} in {_HERE / 'bin'}; try the wheel "
                 "that has it (docs/python.md)")
    try:
        environment = environment_of(program)
    except ProgramMissing as error:
        sys.exit(f"error: {error}")
    os.execve(program, [program, *sys.argv[1:]], environment)


def main() -> None:
    """Runs `troupe`, which the wheel puts into PATH."""
    _become("troupe")


def plan_main() -> None:
    """Runs `troupe-plan`."""
    _become("troupe-plan")
