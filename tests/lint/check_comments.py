"""Fails on comments that do not read as plain English: a `///` brief, or the
first line of a file, that begins with Of, That, Likewise, Whether, What, Where or .. in place of a verb
or the thing's name; "one a thread" for "one per thread"; "behind" for after.
comments_allowed.txt has how many of each a folder may still have; a folder that
has fewer fails too, until its number is lowered."""
import collections
import pathlib
import re

from sources import cpp_files, finish, root

COMMENT = re.compile(r"^(.*?[\s;{,)]|)(//.*)$")
FRAGMENT = r"(?:(?:Of|That|Likewise|Whether|What|Where)\b|\.\.)"
BRIEF = re.compile(rf"^///<? *{FRAGMENT}")
HEAD = re.compile(rf"^// {FRAGMENT}")  # of a file, in its first line
RULES = {
    "per": re.compile(r"\bone a (?:thread|device|sample|call|key|row|step)\b"),
    "after": re.compile(r"\bbehind\b", re.I),
}
ALLOWED = pathlib.Path(__file__).with_name("comments_allowed.txt")


def broken(lines):
    """(rule, line number) of what the comments of a file break."""
    before = ""  # the last line, where it was a whole line of ///
    for number, line in enumerate(lines, 1):
        comment = COMMENT.match(line)
        brief = comment and BRIEF.match(comment[2])
        if (brief and not before) or (number == 1 and HEAD.match(line)):
            yield "brief", number
        before = line.strip().startswith("///")
        for rule, pattern in RULES.items():
            if comment and pattern.search(comment[2]):
                yield rule, number


def folder_of(path):
    """config/base of a source there, tests of any test, troupe of a header."""
    deep = path.parts[0] not in ("tests", "examples", "troupe")
    return "/".join(path.parts[:2 if deep else 1])


def check(top):
    allowed = {}
    for line in ALLOWED.read_text().splitlines():
        if line and not line.startswith("#"):
            rule, folder, count = line.split()
            allowed[rule, folder] = int(count)
    places = collections.defaultdict(list)
    for file in cpp_files(top):
        path = file.relative_to(top)
        for rule, number in broken(file.read_text().splitlines()):
            places[rule, folder_of(path)].append(f"{path}:{number}")
    for key in sorted({*allowed, *places}):
        rule, folder = key
        found, most = places[key], allowed.get(key, 0)
        if len(found) > most:
            yield (f"{folder}: {len(found)} comments break '{rule}', {most} may: "
                   + " ".join(found))
        if len(found) < most:
            yield (f"{ALLOWED.name}: '{rule} {folder}' is {len(found)} now, "
                   f"not {most}")


finish(list(check(root())))
