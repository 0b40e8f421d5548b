"""Fails when a file includes, or a CMake list links, what its library may not
know, or when a folder's README has not the map that includes.toml says.

With --write it writes the maps."""
import re
import sys
import tomllib

from sources import LIBRARIES, cpp_files, finish, root

NOT_IN_HEADERS = re.compile(r"(fmt/|nlohmann/(?!json_fwd)|torch/"
                            r"|ATen/(?!core/Tensor\.h)|msgpack)")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)')
MAP = re.compile(r"<!-- map -->\n.*?<!-- /map -->\n", re.S)


def read_table(top):
    with open(top / "tests/lint/includes.toml", "rb") as file:
        return tomllib.load(file)


def place_of(file, top):
    """(library, sub-folder, whether a test): tests/net/base/x.cpp ->
    ("net", "base", True)."""
    parts = file.relative_to(top).parts
    if parts[0] != "tests":
        return parts[0], parts[1] if len(parts) > 2 else "", False
    for i, part in enumerate(parts[1:-1], 1):
        if part in LIBRARIES:
            return part, parts[i + 1] if i + 2 < len(parts) else "", True
    return "", "", True  # helpers of all tests, benchmarks: below everything


def wrong_library(table, place, name):
    """Why a file at `place` may not include our header `name`, or None."""
    library, folder, is_test = place
    first, *rest = name.split("/")
    if first not in table["libraries"] or not library:
        return None
    if first != library:
        if first not in table["libraries"][library]:
            return f"{library} may not include {first}"
        return None
    uses = table["folders"].get(library, {}).get(folder)
    if is_test or uses is None or len(rest) < 2 or rest[0] == folder:
        return None
    if rest[0] not in uses["uses"]:
        return f"{library}/{folder} may not include {library}/{rest[0]}"
    return None


def wrong_third_party(table, place, header, name):
    """Why a file at `place` may not include another's header, or None."""
    library, folder, is_test = place
    for pattern, homes in table["third_party"].items():
        if not re.match(pattern, name) or not library:
            continue
        seen = {home.split("/")[0] for home in homes}
        if is_test:
            seen |= {above for above, below in table["libraries"].items()
                     if set(below) & seen}
        if library not in seen:
            return f"<{name}> belongs in {homes}"
        if not is_test and folder in table["without"].get(pattern, []):
            return f"<{name}> does not belong in {library}/{folder}"
    if header and not is_test and NOT_IN_HEADERS.match(name) \
            and library != "troupe":
        return f"<{name}> does not belong in a header"
    return None


def check_includes(top, table):
    for file in cpp_files(top):
        place = place_of(file, top)
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if not (found := INCLUDE.match(line)):
                continue
            ours = found[1] == '"' and not found[2].startswith("troupe/")
            why = wrong_library(table, place, found[2]) if found[1] == '"' else None
            why = why or (None if ours else wrong_third_party(
                table, place, file.suffix == ".hpp", found[2]))
            if why:
                yield f"{file.relative_to(top)}:{number}: {why}"


def check_folders(top, table):
    """Each folder has its line, each line comes after what it uses."""
    for library in LIBRARIES:
        lines = table["folders"].get(library, {})
        there = {file.relative_to(top / library).parts[0]
                 for file in cpp_files(top, [library])}
        for name in sorted(there ^ set(lines)):
            yield f"tests/lint/includes.toml: {library}/{name} is " + (
                "no folder" if name in lines else "not in the table")
        before = set()
        for name, line in lines.items():
            for used in line["uses"]:
                if used not in before:
                    yield (f"tests/lint/includes.toml: {library}/{name} uses {used},"
                           " which does not come before it")
            before.add(name)


def check_links(top, table):
    text = re.sub(r"#[^\n]*", "", (top / "CMakeLists.txt").read_text())
    found = re.findall(r"troupe_library\(\s*(\w+)([^)]*)\)", text)
    parts = table["parts"]
    for library in sorted(set(LIBRARIES) - {name for name, _ in found}):
        yield f"CMakeLists.txt: no troupe_library({library})"
    for name, arguments in found:
        library = parts.get(name, {}).get("of", name)
        needs, _, third = arguments.partition("THIRD_PARTY")
        needs, _, folders = needs.partition("FOLDERS")
        if folders.split() != [f"{library}/{folder}" for folder
                               in parts.get(name, {}).get("folders", [])]:
            yield f"CMakeLists.txt: {name} has other folders than includes.toml"
        for need in needs.replace("NEEDS", "").split():
            if parts.get(need, {}).get("of", need) not in [library, *table["libraries"][library]]:
                yield f"CMakeLists.txt: {name} may not link {need}"
        for target in third.split():
            for pattern, homes in table["targets"].items():
                if re.match(pattern, target) and name not in homes:
                    yield f"CMakeLists.txt: {target} belongs in {homes}"


def map_of(library, table):
    rows = ["<!-- map -->", "| sub-folder | holds | uses |", "|---|---|---|"]
    for name, line in table["folders"][library].items():
        rows.append(f"| `{name}` | {line['holds']} | {' '.join(line['uses'])} |")
    return "\n".join([*rows, "<!-- /map -->", ""])


def check_maps(top, table, write):
    for library in LIBRARIES:
        readme = top / library / "README.md"
        text = readme.read_text()
        new = MAP.sub(lambda _: map_of(library, table), text)
        if write:
            readme.write_text(new)
        elif new != text or not MAP.search(text):
            yield (f"{library}/README.md: the map differs from includes.toml;"
                   " run tests/lint/check_includes.py . --write")


top = root()
table = read_table(top)
finish([*check_includes(top, table), *check_folders(top, table),
        *check_links(top, table), *check_maps(top, table, "--write" in sys.argv)])
