#!/usr/bin/env python3
"""Says which tests the last ctest run skipped, and why.

usage: skipped.py BUILD_FOLDER [DOCUMENT..]

Reads Testing/Temporary/LastTest.log: tests of GoogleTest and of unittest, also those
inside a program that ctest runs as one test. With documents (README.md): fails where a
test that one of them names did not run or was skipped, and where any test was skipped
for another reason than a GPU, a program or a system that is not there."""
import collections
import pathlib
import re
import sys

TEST = re.compile(r"^\d+/\d+ Testing: ([^\n]+)\n(.*?)^Test time =[^\n]*\n-*\n"
                  r"(?:Test Pass Reason:\n)?([^\n]*)", re.M | re.S)
RUN = re.compile(r"^\[ RUN      \] (\S+)", re.M)
GTEST = re.compile(r": Skipped\n(.*?)\n+\[  SKIPPED \] (\S+?)(?:,| \()", re.S)
UNITTEST = re.compile(r"^((?:test_|setUpClass)\w*) \(([\w.]+)\)(?:\n.*)?? \.\.\. skipped (['\"])(.*)\3$",
                      re.M)
WHOLE = re.compile(r"^skipped: (.*)$", re.M)
# What a clone may lack: hardware, programs, what only root or a quiet machine may do,
# and the folder of the second opinion.
ALLOWED = re.compile(r"no GPU: |this machine has .*GPUs|no \S+ on this machine|no Python with "
                     r"transformers|needs root|Operation not permitted|TROUPE_SOAK is not set"
                     r"|no large pages|no /dev/full")
SECOND = re.compile(r"no golden data at ")
NAMED = re.compile(r"`((?:[A-Z]\w*\.[A-Z]\w*)|tests/e2e/\w+_test\.py)`")


def skips_of(output):
    """(test, reason) of each test that says in its output that it was skipped."""
    for reason, name in GTEST.findall(output):
        yield name, " ".join(reason.split())
    for _, place, _, reason in UNITTEST.findall(output):
        yield place.removeprefix("__main__."), reason
    for reason in WHOLE.findall(output):
        yield "", reason


def read(log):
    """Names of all ctest entries, of the tests in them, and (entry, test, reason) of
    those skipped. An entry that names no tests of its own counts as one."""
    entries, tests, skips = [], [], []
    for name, output, verdict in TEST.findall(log):
        entries.append(name)
        tests += RUN.findall(output) or [name]
        found = list(dict.fromkeys(skips_of(output)))
        if verdict.startswith("Skip regular expression"):  # as a whole
            found = [("", found[0][1] if found else "it says no reason")]
        skips += [(name, inner, reason) for inner, reason in found]
    return entries, tests, skips


def title(entry, inner):
    suite = inner.rpartition(".")[0]
    return f"{entry}: {inner}" if inner and not entry.endswith("." + suite) else inner or entry


def show(entries, tests, skips):
    by_reason = collections.defaultdict(list)
    for entry, inner, reason in skips:
        by_reason[reason].append(title(entry, inner))
    print(f"{len(skips)} of {len(tests)} tests in {len(entries)} ctest entries skipped"
          + (":" if skips else ""))
    for reason, titles in sorted(by_reason.items(), key=lambda one: -len(one[1])):
        more = f" and {len(titles) - 3} more" if len(titles) > 3 else ""
        print(f"  {len(titles):4} {reason[:150]}\n       {', '.join(titles[:3])}{more}")


def proofs(documents):
    for document in documents:
        if pathlib.Path(document).is_file():
            for name in NAMED.findall(pathlib.Path(document).read_text()):
                yield document, name


def complaints(tests, skips, documents):
    for name, inner, reason in skips:
        second = name.endswith("_second_opinion") and SECOND.match(reason)
        if not second and not ALLOWED.search(reason):
            yield f"{name} {inner} was skipped: {reason}"
    every = "\n".join(tests)
    for document, proof in proofs(documents):
        entry = re.sub(r"tests/e2e/(\w+)_test\.py", r"e2e.\1", proof)
        if not re.search(rf"(^|/){re.escape(entry)}($|[/ ])", every, re.M):
            yield f"{document} names {proof}, which did not run"


def main():
    build, *documents = sys.argv[1:]
    file = pathlib.Path(build, "Testing/Temporary/LastTest.log")
    if not file.is_file():
        sys.exit(f"skipped.py: no tests ran: {file} is not there")
    entries, tests, skips = read(file.read_text(errors="replace"))
    show(entries, tests, skips)
    found = list(complaints(tests, skips, documents)) if documents else []
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
