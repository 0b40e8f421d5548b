"""Reads the YAML that Troupe writes: config.yaml and plan.yaml of a run. Python
has no reader of its own, and theirs is a small part of YAML: blocks of keys,
`[...]` and `{...}` on one line, plain and quoted values. Anything else is refused,
never guessed."""
from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["read_yaml"]

_KEY = re.compile(r'(?P<key>"(?:\\.|[^"\\])*"|[^\s"{}\[\],:][^:]*?)\s*:(?:\s+|$)')
_PLAIN = re.compile(r"[^,\[\]{}]+")
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
_SINGLE = re.compile(r"'(?:''|[^'])*'")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


class _Flow:
    """A value on one line."""

    def __init__(self, text: str, line: int):
        self.text, self.line, self.at = text, line, 0

    def fail(self, wanted: str) -> ValueError:
        return ValueError(f"line {self.line}: expected {wanted}, got "
                          f"{self.text[self.at:]!r}")

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1

    def take(self, mark: str) -> bool:
        self.skip()
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) * found
        return found

    def value(self, *, inside: bool) -> Any:
        if self.take("["):
            return self.items("]", lambda: self.value(inside=True))
        if self.take("{"):
            return dict(self.items("}", self.pair))
        self.skip()
        if quoted := _QUOTED.match(self.text, self.at):
            self.at = quoted.end()
            return json.loads(quoted[0])
        if quoted := _SINGLE.match(self.text, self.at):
            self.at = quoted.end()
            return quoted[0][1:-1].replace("''", "'")
        plain = _PLAIN.match(self.text, self.at) if inside else None
        text = plain[0] if plain else self.text[self.at:] * (not inside)
        self.at += len(text)
        return _scalar(text.strip(), self)

    def pair(self) -> tuple[str, Any]:
        self.skip()
        found = _KEY.match(self.text, self.at)
        if not found:
            raise self.fail("a key")
        self.at = found.end()
        return _key(found), self.value(inside=True)

    def items(self, end: str, one: Any) -> list[Any]:
        found: list[Any] = []
        while not self.take(end):
            if found and not self.take(","):
                raise self.fail(f"',' or '{end}'")
            found.append(one())
        return found


def _key(found: re.Match[str]) -> str:
    key: str = found["key"]
    return str(json.loads(key)) if key.startswith('"') else key


def _scalar(text: str, flow: _Flow) -> Any:
    if text[:1] in ("|", ">", "&", "*", "!"):
        flow.at = 0
        raise flow.fail("a value on one line")
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.match(text):
        return float(text) if re.search(r"[.eE]", text) else int(text)
    return text


def _lines(text: str) -> list[tuple[int, int, str]]:
    """Number, indentation and content of the lines that have any."""
    return [(number, len(line) - len(line.lstrip()), line.strip())
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#")]


def read_yaml(text: str) -> dict[str, Any]:
    """Returns the mapping of a file that Troupe wrote. Throws ValueError."""
    top: dict[str, Any] = {}
    open_blocks: list[tuple[int, dict[str, Any]]] = [(-1, top)]
    for number, indent, line in _lines(text):
        while indent <= open_blocks[-1][0]:
            open_blocks.pop()
        found = _KEY.match(line)
        if not found:
            raise ValueError(f"line {number}: expected 'key: value', got {line!r}")
        rest = line[found.end():]
        block = open_blocks[-1][1]
        if not rest:
            inner: dict[str, Any] = {}
            block[_key(found)] = inner
            open_blocks.append((indent, inner))
            continue
        flow = _Flow(rest, number)
        block[_key(found)] = flow.value(inside=False)
        if flow.text[flow.at:].strip():
            raise flow.fail("the end of the line")
    return top
