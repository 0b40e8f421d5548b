"""Fails when a file or function is too large, nests too deep, or a class has too
many data members. What is over the limit for a reason stands in
sizes_allowed.txt, which only shrinks: an entry that is no longer needed, or larger
than needed, fails too."""
from cpp_outline import Outline
from sources import cpp_files, finish, root

SOURCE_LINES, HEADER_LINES, FUNCTION_LINES, DEPTH, FIELDS = 400, 200, 60, 3, 12


def measure(top):
    """(kind, path, name, number, limit, line) of everything with a limit."""
    for file in cpp_files(top):
        path, text = str(file.relative_to(top)), file.read_text()
        limit = HEADER_LINES if file.suffix == ".hpp" else SOURCE_LINES
        yield "lines", path, "-", text.count("\n"), limit, 1
        outline = Outline(text)
        for one in outline.classes:
            yield "fields", path, one.name, one.members, FIELDS, one.first_line
        for function in outline.functions:
            length = function.last_line - function.first_line + 1
            where = function.name, function.first_line
            yield "function", path, where[0], length, FUNCTION_LINES, where[1]
            yield "depth", path, where[0], function.depth, DEPTH, where[1]


def read_allowed(file):
    allowed = {}
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            kind, path, name, number = line.split()
            allowed[kind, path, name] = int(number)
    return allowed


top = root()
allowed, errors, used = read_allowed(top / "tests/lint/sizes_allowed.txt"), [], {}
for kind, path, name, number, limit, line in measure(top):
    key = (kind, path, name)
    if number <= limit:
        continue
    used[key] = max(used.get(key, 0), number)
    if number > allowed.get(key, limit):
        errors.append(f"{path}:{line}: {kind} {name}: {number}, limit {limit}")
for key, number in allowed.items():
    if used.get(key, 0) < number:
        errors.append(f"sizes_allowed.txt: {' '.join(key)} {number}: "
                      f"now {used.get(key, 'within its limit')}; lower it")
finish(errors)
