"""What a program says while it runs: the one JSON document on its standard output,
and the lines on its standard error, which become exceptions. Threads read both, so
that the program never waits for a reader; they hold nothing of the run itself."""
from __future__ import annotations

import collections
import json
import subprocess
import threading
from collections.abc import Callable
from typing import IO, Any

__all__ = ["ProgramOutput"]

_SAID_LINES = 500  # of stderr, kept for errors
_JOIN_S = 10       # a reader ends with its pipe


class ProgramOutput:
    """Reads the pipes of a process that was started with --json."""

    def __init__(self, process: subprocess.Popen[str],
                 on_message: Callable[[str], None] | None):
        self._said: collections.deque[str] = collections.deque(maxlen=_SAID_LINES)
        self._on_message = on_message
        self._text = ""
        self._complete = threading.Event()
        assert process.stdout and process.stderr
        self._pipes = (process.stdout, process.stderr)
        self._readers = [
            threading.Thread(target=read, args=(pipe,), daemon=True)
            for read, pipe in zip((self._read_document, self._read_messages),
                                  self._pipes)]
        for reader in self._readers:
            reader.start()

    def _read_document(self, pipe: IO[str]) -> None:
        for line in pipe:
            if not self._complete.is_set():
                self._text += line
                if line.rstrip() == "}":  # the only one without indentation
                    self._complete.set()
        self._complete.set()

    def _read_messages(self, pipe: IO[str]) -> None:
        for line in pipe:
            self._said.append(line)
            if self._on_message:
                self._on_message(line.rstrip("\n"))

    def document(self) -> dict[str, Any] | None:
        """Waits for the document; None: the program ended without one."""
        self._complete.wait()
        try:
            return json.loads(self._text)  # type: ignore[no-any-return]
        except json.JSONDecodeError:
            return None

    def messages(self) -> str:
        """The end of what a program that has ended said on stderr."""
        for reader in self._readers:
            reader.join(_JOIN_S)
        return "".join(self._said)

    def close(self) -> None:
        """Ends the readers of a program that has ended."""
        for reader, pipe in zip(self._readers, self._pipes):
            reader.join(_JOIN_S)
            if not reader.is_alive():
                pipe.close()
