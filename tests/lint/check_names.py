"""Fails when two sources of one target, or a source and a header, have a name that
they cannot have when they are compiled as one: in anonymous namespaces, static, or
a macro. Which sources are (cmake/TroupeLibrary.cmake) shifts when one is added.
Overloads pass, and so do equal aliases and macros."""
import re
import tomllib

from cpp_names import names_of
from sources import LIBRARIES, cpp_files, finish, root

APART = re.compile(r"set_source_files_properties\(([^)]*)SKIP_UNITY_BUILD_INCLUSION ON\)")


def sources_apart(top):
    """Tests that are never compiled with others."""
    file = top / "tests/CMakeLists.txt"
    found = APART.findall(file.read_text()) if file.exists() else []
    return {f"tests/{name}" for names in found for name in names.split()
            if name.endswith(".cpp")}


def target_of(parts, table):
    """The target that compiles a file in batches; None if no target does."""
    folder, *rest = parts
    if parts[-1].endswith((".cu", ".cuh")):
        return "/".join(parts[:-1])
    if folder in LIBRARIES:
        return part_of(folder, rest[0], table)
    if folder != "tests":
        return None
    if rest[0] == "bench":
        return "bench"
    if rest[0] == "support" and rest[1] in LIBRARIES:
        return f"{rest[1]}_test"
    if rest[0] not in LIBRARIES or len(rest) < 3:
        return None
    if rest[1] == "dist":
        return f"{rest[0]}_dist_test"
    return f"{part_of(*rest[:2], table)}_test"


def part_of(library, folder, table):
    for name, part in table["parts"].items():
        if part["of"] == library and folder in part["folders"]:
            return name
    return library


def collide(one, other):
    """Whether a compiler that sees both refuses them, or what uses them."""
    if one.kind == other.kind == "function":
        return one.text == other.text and (one.internal or other.internal)
    if one.kind == other.kind and one.kind in ("alias", "macro"):
        return one.text != other.text
    return "forward" not in (one.text, other.text)


def collisions(files):
    """files: {path: names}, sources before headers."""
    known = {}
    for path, names in files.items():
        for name in names:
            same = known.setdefault((name.scope, name.name), [])
            for where, other in same:
                if where != path and collide(name, other):
                    yield (f"{where}:{other.line}: {other.kind} {other.name} is in"
                           f" {path}:{name.line} too, of the same target")
                    break
            same.append((path, name))


def seen_by_all(name):
    return name.kind in ("function", "type", "variable")


def names_by_target(top):
    with open(top / "tests/lint/includes.toml", "rb") as table_file:
        table = tomllib.load(table_file)
    apart, targets = sources_apart(top), {}
    for file in sorted(cpp_files(top), key=lambda file: file.suffix in (".hpp", ".cuh")):
        path = str(file.relative_to(top))
        target = target_of(file.relative_to(top).parts, table)
        if target is None or path in apart:
            continue
        names = names_of(file.read_text())
        if file.suffix in (".hpp", ".cuh"):
            names = [name for name in names if seen_by_all(name)]
        targets.setdefault(target, {})[path] = names
    return targets


finish([line for files in names_by_target(root()).values() for line in collisions(files)])
