"""Fails on what the house rules forbid: sleeps in loops, namespaces opened
wholesale, unfinished marks, paths of one machine, floats in messages, files
of tests that run at once under one name, and words that the project gave up
(gone_words.txt beside this file)."""
import functools
import pathlib
import re

from cpp_outline import Outline
from sources import (LIBRARIES, blank_comments, cpp_files, finish,
                     repository_files, root)

SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(")
NAMESPACE = re.compile(r"\busing\s+namespace\s+([\w:]+)")
FOREIGN = {"torch", "at", "c10", "caf", "std"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"
                        r"|\b(not implemented|unimplemented)\b", re.I)
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(" + "|".join(
    ["work", "farm", "root", "home", "Users"]) + r")/")
FLOATING = re.compile(  # a field, not a conversion to or from bits
    r"^\s*(?:std::\w+<[^;]*\b(?:float|double)\b[^;]*>|float|double)\s+\w+"
    r"\s*(?:[={][^;]*)?;")
SHARED_FOLDER = re.compile(r"\b(TempDir|temp_directory_path)\(\)")
MESSAGES = re.compile(r"actors/(\w+_)?messages?(_parts)?\.hpp")
TEXT = {".cpp", ".hpp", ".py", ".sh", ".md", ".txt", ".cmake", ".yaml", ".json",
        ".jsonl", ""}
NAME = re.compile(r"[A-Za-z]\w*")
GONE = pathlib.Path(__file__).with_name("gone_words.txt")


def gone_words():
    """{name, or its small parts in a row: (replacement, names that stay)}."""
    gone = {}
    for line in GONE.read_text().splitlines():
        if line and not line.startswith("#"):
            word, instead, *stays = line.split("\t")
            name = "_" in word or word != word.lower()
            gone[word if name else tuple(word.split())] = (instead, stays)
    return gone


@functools.cache
def parts_of(name):
    """Of one_name, OneName and names: one, name."""
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return [part.lower().removesuffix("s") for part in found]


def gone_in(line, gone):
    """(word, replacement) of each word of the line that is gone."""
    parts = []
    for name in NAME.findall(line):
        instead, stays = gone.get(name, (None, []))
        if instead:
            yield name, instead
        parts += parts_of(name)
    for one, two in zip(parts, [*parts[1:], ""]):
        for word in ((one,), (one, two)):
            instead, stays = gone.get(word, (None, []))
            if instead and not any(name in line for name in stays):
                yield " ".join(word), instead


def check_cpp(top):
    for file in cpp_files(top):
        path, text = file.relative_to(top), file.read_text()
        loops = {line for function in Outline(text).functions
                 for line in function.loop_lines}
        for number, line in enumerate(blank_comments(text).splitlines(), 1):
            product = path.parts[0] in LIBRARIES
            if SLEEP.search(line) and (product or number in loops):
                yield f"{path}:{number}: a sleep; wait for the event itself"
            found = NAMESPACE.search(line)
            foreign = found and found[1].split("::")[0] in FOREIGN
            whole_file = found and product and found.start() == 0
            if found and not found[1].endswith("_literals") and (
                    whole_file or foreign):
                yield f"{path}:{number}: using namespace {found[1]}"
            if SHARED_FOLDER.search(line) and path.name.endswith("_test.cpp"):
                yield f"{path}:{number}: a folder of all tests; TempFolder"
            if MESSAGES.fullmatch(str(path)) and FLOATING.search(line):
                yield f"{path}:{number}: a float in a message; send its bits"


def check_text(top):
    gone = gone_words()
    for file in repository_files(top):
        path = file.relative_to(top)
        if file.suffix not in TEXT or path.parts[:2] == ("tests", "lint"):
            continue
        for word, instead in gone_in(str(path), gone):
            yield f"{path}: '{word}' is gone, say {instead}"
        try:
            lines = file.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            if UNFINISHED.search(line):
                yield f"{path}:{number}: unfinished: {line.strip()[:60]}"
            if MACHINE_PATH.search(line):
                yield f"{path}:{number}: a path of one machine"
            for word, instead in gone_in(line, gone):
                yield f"{path}:{number}: '{word}' is gone, say {instead}"


top = root()
finish([*check_cpp(top), *check_text(top)])
