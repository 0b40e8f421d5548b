"""Follows metrics.jsonl of a run that this process started. A run that goes on cuts
the file back to its checkpoint first, and so does one that lost a worker: lines
that were read may be gone, and are told again."""
from __future__ import annotations

import json
import pathlib
from typing import Any

__all__ = ["MetricsFollower"]


class MetricsFollower:
    """Yields the lines of the session whose master has this pid: those after its
    first step, once status.json says that it is the one that writes."""

    def __init__(self, folder: pathlib.Path, pid: int, first_step: int):
        self._file = folder / "metrics.jsonl"
        self._status = folder / "status.json"
        self._pid, self._first_step = pid, first_step
        self._begun = False
        self._end = 0       # of the last line that was told
        self._last = b""    # that line
        self._attempt = 0   # of that line

    def next(self) -> dict[str, Any] | None:
        """Returns the next line, or None if there is none yet."""
        if not self._begun and not self._is_ours():
            return None
        self._begun = True
        try:
            with self._file.open("rb") as lines:
                return self._next_of(lines)
        except FileNotFoundError:
            return None

    def _is_ours(self) -> bool:
        try:
            found = json.loads(self._status.read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return False
        return bool(found.get("pid") == self._pid)

    def _next_of(self, lines: Any) -> dict[str, Any] | None:
        newer_than = 0
        lines.seek(self._end - len(self._last))
        if lines.read(len(self._last)) != self._last:  # it was cut back
            lines.seek(0)
            newer_than = self._attempt
        for line in lines:
            if not line.endswith(b"\n"):
                return None
            found: dict[str, Any] = json.loads(line)
            attempt = int(found.get("training/attempt", 0))
            if found["step"] <= self._first_step or (
                    newer_than and attempt <= newer_than):
                continue
            self._end, self._last, self._attempt = lines.tell(), line, attempt
            return found
        return None
