"""What the lints look at, and how they end: one line an error, exit code 1."""
import pathlib
import re
import subprocess
import sys

LIBRARIES = ["config", "plans", "net", "models", "actors", "runtime"]
FOLDERS = LIBRARIES + ["troupe", "tests", "examples"]


def root():
    """The repository, given as the only argument."""
    return pathlib.Path(sys.argv[1]).resolve()


def cpp_files(top, folders=FOLDERS):
    """C++ sources and headers of these folders, in order."""
    for folder in folders:
        for file in sorted((top / folder).rglob("*")):
            if file.suffix in (".cpp", ".hpp", ".cu", ".cuh") and file.is_file():
                yield file


def repository_files(top):
    """Every file that git tracks or would add, as text files go."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=top, capture_output=True, text=True)
    for name in sorted(set(listed.stdout.splitlines())):
        if (top / name).is_file() and not (top / name).is_symlink():
            yield top / name


def blank_comments(text, strings=True):
    """`text` with comments (and contents of literals) as blanks; same lines."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?:.*?)\)\1"'
        r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)

    def blank(match):
        found = match[0]
        if found.startswith("/"):
            return re.sub(r"[^\n]", " ", found)
        if found.startswith("'") and match.start() and text[match.start() - 1].isdigit():
            return found  # 1'000: a separator, no character
        if not strings:
            return found
        return '"' + re.sub(r"[^\n]", " ", found[1:-1]) + '"'

    return pattern.sub(blank, text)


def finish(errors):
    """Prints the errors and ends the program."""
    for line in errors:
        print(line)
    sys.exit(1 if errors else 0)
