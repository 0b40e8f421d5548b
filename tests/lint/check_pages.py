"""Fails when a page speaks of what is not there: a quoted block that differs
from its file; a test, a path, a make target or a name in a file that does not exist; a link
between pages that leads nowhere; a document in capitals that is no file (also
in comments of sources). And when the README grows past what is read at once."""
import re

from sources import finish, repository_files, root

BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```", re.M | re.S)
TICKED = re.compile(r"`([^`\n]+)`")
TEST = re.compile(r"^[A-Z]\w*\.(?:[A-Z]|test_)\w*$")
PATH = re.compile(r"^(?:troupe|config|plans|net|models|actors|runtime|tests|examples"
                  r"|cmake|docs|\.ci)/[\w./*-]*$")
DEFINED = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
PLACE = re.compile(r"^\|[^|]*\| `([^`]+)` \| `(\w+)` \|$", re.M)
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*?)\s*$", re.M)
DOCUMENT = re.compile(
    r"\b(?:DESIGN|INTERFACE|TOOLCHAIN|ARCHITECTURE|[A-Z]{4,}(?=\.md))\b")
COMMENTED = {".cpp", ".hpp", ".py", ".sh", ".md", ".cmake", ".txt", ".yaml", ""}
COMMENTS_ONLY = {".cmake", ".txt", ""}  # INTERFACE is a word of CMake, too
README_BYTES, README_LINES, README_COLUMNS = 8 << 10, 140, 100


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


def without_blocks(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(text):
    """Of the headings, as web pages of repositories spell them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in HEADING.findall(without_blocks(text))}


def check_blocks(top, name, text):
    for _, path, block in BLOCK.findall(text):
        if not (top / path).is_file():
            yield f"{name}: quotes {path}, which is not there"
        elif block not in (top / path).read_text():
            yield f"{name}: the block of {path} differs from the file"


def check_places(top, name, text):
    """Rows `file` | `name` of docs/where.md: the name is in its file."""
    for path, word in PLACE.findall(text):
        file = top / path
        if file.is_file() and not re.search(rf"\b{word}\b", file.read_text()):
            yield f"{name}: {word} is not in {path}"


def check_names(top, name, text, tests, targets):
    for ticked in TICKED.findall(without_blocks(text)):
        if TEST.match(ticked) and ticked not in tests:
            yield f"{name}: no test {ticked}"
        if PATH.match(ticked) and not exists(top, ticked):
            yield f"{name}: no file {ticked}"
        made = re.match(r"^make (\w+)$", ticked)
        if made and made[1] not in targets:
            yield f"{name}: no make target {made[1]}"


def check_links(top, document, text):
    name = document.relative_to(top)
    for link in LINK.findall(without_blocks(text)):
        if re.match(r"\w+://|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        page = (document.parent / path).resolve() if path else document
        if not page.exists():
            yield f"{name}: the link {link} leads to no file"
        elif anchor and page.suffix == ".md":
            if anchor not in anchors(page.read_text()):
                yield f"{name}: no heading for the link {link}"


def check_documents(top, file):
    """A word in capitals that names a document is the name of a file."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if file.suffix in COMMENTS_ONLY:
            line = line.partition("#")[2]
        for word in DOCUMENT.findall(line):
            if not (top / f"{word}.md").is_file():
                yield (f"{file.relative_to(top)}:{number}: {word} is no file; "
                       "name a page of docs/")


def check_readme(text):
    size, lines = len(text.encode()), text.splitlines()
    if size > README_BYTES or len(lines) > README_LINES:
        yield (f"README.md: {size} bytes and {len(lines)} lines, at most "
               f"{README_BYTES} and {README_LINES}")
    for number, line in enumerate(lines, 1):
        if len(line) > README_COLUMNS:
            yield f"README.md:{number}: {len(line)} columns, {README_COLUMNS} fit"


def check(top):
    files = list(repository_files(top))
    tests = tests_of(top, files)
    targets = re.findall(r"^(\w+):", (top / "Makefile").read_text(), re.M)
    yield from check_readme((top / "README.md").read_text())
    for file in files:
        lint = file.relative_to(top).parts[:2] == ("tests", "lint")
        if file.suffix in COMMENTED and not lint:
            yield from check_documents(top, file)
        if file.suffix == ".md":
            text, name = file.read_text(), file.relative_to(top)
            yield from check_blocks(top, name, text)
            yield from check_places(top, name, text)
            yield from check_names(top, name, text, tests, targets)
            yield from check_links(top, file, text)


finish(list(check(root())))
