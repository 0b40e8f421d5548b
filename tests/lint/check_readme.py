"""Fails when a document speaks of what is not there: a quoted block that
differs from its file, a test, a path or a make target that does not exist."""
import re

from sources import finish, repository_files, root

BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```", re.M | re.S)
TICKED = re.compile(r"`([^`\n]+)`")
TEST = re.compile(r"^[A-Z]\w*\.(?:[A-Z]|test_)\w*$")
PATH = re.compile(r"^(?:troupe|config|plans|net|models|actors|runtime|tests|examples"
                  r"|cmake|\.ci)/[\w./*-]*$")
DEFINED = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def tests_of(top, files):
    names = set()
    for file in files:
        path = str(file.relative_to(top))
        if path.startswith("tests/") and file.suffix == ".cpp":
            names |= {".".join(m) for m in DEFINED.findall(file.read_text())}
        if path.startswith("tests/") and file.suffix == ".py":
            text = file.read_text()
            for suite in re.findall(r"^class (\w+)", text, re.M):
                names |= {f"{suite}.{m}"
                          for m in re.findall(r"def (test_\w+)", text)}
    return names


def exists(top, path):
    return any(top.glob(path.rstrip("/"))) if "*" in path else (top / path).exists()


def check(top, document, tests, targets):
    text = document.read_text()
    name = document.relative_to(top)
    for _, path, block in BLOCK.findall(text):
        if not (top / path).is_file():
            yield f"{name}: quotes {path}, which is not there"
        elif block not in (top / path).read_text():
            yield f"{name}: the block of {path} differs from the file"
    for ticked in TICKED.findall(re.sub(r"^```.*?^```", "", text,
                                        flags=re.M | re.S)):
        if TEST.match(ticked) and ticked not in tests:
            yield f"{name}: no test {ticked}"
        if PATH.match(ticked) and not exists(top, ticked):
            yield f"{name}: no file {ticked}"
        made = re.match(r"^make (\w+)$", ticked)
        if made and made[1] not in targets:
            yield f"{name}: no make target {made[1]}"


top = root()
files = list(repository_files(top))
tests = tests_of(top, files)
targets = re.findall(r"^(\w+):", (top / "Makefile").read_text(), re.M)
errors = []
for document in files:
    if document.suffix == ".md":
        errors += check(top, document, tests, targets)
finish(errors)
