"""A workflow built in Python: calls that read and write keys, written as the file
that `workflow:` names. Functions are those of a Python file, by reference: they run
in processes of the workers, not here."""
from __future__ import annotations

import inspect
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

from .program import Path

__all__ = ["Workflow"]

#: Keys, or keys with the names that the call's code has for them.
Keys = Union[Iterable[str], Mapping[str, str]]


def _keys(keys: Keys) -> list[str] | dict[str, str]:
    if isinstance(keys, str):
        raise TypeError(f"keys are a list or a mapping, got the text {keys!r}; "
                        f"try [{keys!r}]")
    return dict(keys) if isinstance(keys, Mapping) else list(keys)


def _place_of(function: Callable[..., Any]) -> str:
    """Returns FILE.py:NAME. Throws ValueError for what a process could not find."""
    name = getattr(function, "__qualname__", "")
    file = (inspect.getsourcefile(function) if inspect.isfunction(function)
            else None)
    if not name.isidentifier() or not file or not file.endswith(".py"):
        raise ValueError(f"expected a function that a Python file defines by name, "
                         f"got {function!r}; try a `def` outside of functions "
                         "and classes")
    try:  # as short as it is from where the run begins
        file = str(pathlib.Path(file).resolve().relative_to(pathlib.Path.cwd()))
    except ValueError:
        pass
    return f"{file}:{name}"


class Workflow:
    """Calls and roles in the order in which they are added; the keys alone order
    their work.

        w = troupe.Workflow(settings=["rollout", "updates"])
        w.role("actor", trained=True)
        w.generate("actor_gen", "actor")
        w.each("check", check, reads=["response"], writes=["tool_score"])
        w.groups("pick_best", pick_best, reads=["tool_score"], writes=["keep"])
        ...
        troupe.train("run.yaml", {"workflow": w.save("workflow.yaml")})
    """

    def __init__(self, settings: Iterable[str] = ()):
        self._settings = list(settings)
        self._roles: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        self._metrics: dict[str, str] = {}

    def role(self, name: str, *, trained: bool = False, scalar_head: bool = False,
             like: str | None = None, follows: str | None = None) -> Workflow:
        """A set of weights with a purpose."""
        return self._add(self._roles, name, {
            "trained": trained or None, "scalar_head": scalar_head or None,
            "like": like, "follows": follows})

    def generate(self, name: str, role: str) -> Workflow:
        """The role's responses to the prompts."""
        return self._add(self._calls, name, {"generate": role})

    def converse(self, name: str, role: str, function: Callable[..., Any], *,
                 reads: Keys | None = None, writes: Keys | None = None,
                 beside: Iterable[str] | None = None,
                 processes: int = 1) -> Workflow:
        """Conversations with the role, each led by an `async def f(model, sample)`.
        `writes` has what it sets on the sample beside what `generate` writes;
        `beside` names frozen roles that speak too, as `model("opponent")`."""
        return self._add(self._calls, name, {
            "generate": role, "fn": _place_of(function),
            "with": list(beside) if beside is not None else None,
            "processes": processes if processes != 1 else None,
            **self._dataflow(reads, writes)})

    def infer(self, name: str, role: str, fn: str, *, reads: Keys | None = None,
              writes: Keys | None = None) -> Workflow:
        """`logprobs`, `top_logprobs`, `values` or `scores` of given sequences."""
        return self._add(self._calls, name, {
            "infer": role, "fn": fn, **self._dataflow(reads, writes)})

    def train(self, name: str, role: str, fn: str | Callable[..., Any], *,
              reads: Keys, outputs: Iterable[str] | None = None,
              mean_over: str | None = None) -> Workflow:
        """Training of a role by a loss that the program has, or by a Python
        function of a packed batch, which gets `outputs` of the model and is a
        mean over tokens, or over the sum of a key."""
        return self._add(self._calls, name, {
            "train": role, "fn": fn if isinstance(fn, str) else _place_of(fn),
            **self._dataflow(reads, None),
            "outputs": list(outputs) if outputs is not None else None,
            "mean_over": mean_over})

    def each(self, name: str, function: Callable[..., Any], *, reads: Keys,
             writes: Keys, processes: int = 1) -> Workflow:
        """A Python function of one sample. A mapping in `writes` says what a key
        holds: number, integer, flag, text, or per token numbers, integers,
        flags."""
        return self._python(name, function, "sample", reads, writes, processes)

    def groups(self, name: str, function: Callable[..., Any], *, reads: Keys,
               writes: Keys, processes: int = 1) -> Workflow:
        """A Python function of the samples of one prompt."""
        return self._python(name, function, "group", reads, writes, processes)

    def batch(self, name: str, function: Callable[..., Any], *, reads: Keys,
              writes: Keys, carries: Mapping[str, Any] | None = None) -> Workflow:
        """A Python function of the whole step, with numbers that it hands to the
        next: `carries={"level": 1.0}`."""
        return self._python(name, function, "batch", reads, writes, 1, carries)

    def function(self, name: str, function: str, *, reads: Keys | None = None,
                 writes: Keys | None = None,
                 carries: Mapping[str, Any] | None = None) -> Workflow:
        """A function that the program has, such as `rewards`."""
        return self._add(self._calls, name, {
            "function": function, **self._dataflow(reads, writes),
            "carries": dict(carries) if carries else None})

    def metric(self, name: str, key: str) -> Workflow:
        """The mean of a key over the samples of a step."""
        self._metrics[name] = key
        return self

    def _python(self, name: str, function: Callable[..., Any], scope: str,
                reads: Keys, writes: Keys, processes: int,
                carries: Mapping[str, Any] | None = None) -> Workflow:
        return self._add(self._calls, name, {
            "function": _place_of(function), "scope": scope,
            "processes": processes if processes != 1 else None,
            **self._dataflow(reads, writes),
            "carries": dict(carries) if carries else None})

    @staticmethod
    def _dataflow(reads: Keys | None, writes: Keys | None) -> dict[str, Any]:
        return {word: _keys(keys) for word, keys in
                (("reads", reads), ("writes", writes)) if keys is not None}

    def _add(self, to: dict[str, dict[str, Any]], name: str,
             parts: dict[str, Any]) -> Workflow:
        if name in to:
            raise ValueError(f"there is a {name} already; try another name")
        to[name] = {key: value for key, value in parts.items()
                    if value is not None}
        return self

    def text(self) -> str:
        """The YAML of the file, a line per role and call."""
        def section(name: str, entries: Mapping[str, Any]) -> str:
            return name + ":\n" + "".join(
                f"  {json.dumps(key)}: {json.dumps(value)}\n"
                for key, value in entries.items())
        text = "# Written by troupe.Workflow.\n"
        if self._settings:
            text += f"settings: {json.dumps(self._settings)}\n"
        text += section("roles", self._roles) + section("calls", self._calls)
        return text + (section("metrics", self._metrics) if self._metrics else "")

    def save(self, file: Path) -> str:
        """Writes the file, which is named like a workflow: NAME.yaml."""
        name = os.fspath(file)
        if not name.endswith((".yaml", ".yml")):
            raise ValueError(f"expected a name that ends with .yaml, got {name!r}")
        pathlib.Path(name).write_text(self.text(), encoding="utf-8")
        return name
