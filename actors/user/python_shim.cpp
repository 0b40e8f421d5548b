// The program of a process that computes a Python function.
#include "actors/user/python_file.hpp"
#include "actors/user/python_functions.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors {

namespace {

constexpr const char* needs_numpy = R"python(
try:
    import numpy
except ImportError:
    sys.exit(f"{sys.executable} has no numpy, which Python functions get their "
             "values as; try pip install numpy")
)python";

constexpr const char* shim = R"python(
import inspect, mmap

given = [key for key, _, _ in about["reads"]] + about["carried"]
try:
    inspect.signature(function).bind(**dict.fromkeys(given))
except TypeError as error:
    sys.exit(f"{here}: {name} gets {', '.join(given)} by name: {error}")

TYPES = {"f32": numpy.float32, "i32": numpy.int32, "u8": numpy.uint8,
         "text": numpy.uint8}
ALIGNMENT = 64
alone = about["scope"] == "sample"


class Column:
    """A key of all samples, in the memory that the worker shares."""

    def __init__(self, memory, place, kind, per, num):
        self.kind, self.per = kind, per
        lengths = numpy.frombuffer(memory, numpy.uint32, num, place["lengths"])
        self.ends = numpy.cumsum(lengths, dtype=numpy.int64)
        self.data = numpy.zeros(0, TYPES[kind])
        if self.ends[-1] > 0:
            self.data = numpy.frombuffer(memory, TYPES[kind], int(self.ends[-1]),
                                         place["data"])

    def one(self, i):
        part = self.data[self.ends[i - 1] if i else 0:self.ends[i]]
        if self.kind == "text":
            return part.tobytes().decode("utf-8", "replace")
        return part[0] if self.per == "sample" else part

    def several(self, first, end):
        if self.kind != "text" and self.per == "sample":
            return self.data[first:end]
        return [self.one(i) for i in range(first, end)]


def number_array(value, kind, dimensions, what):
    array = numpy.asarray(value)
    if array.ndim != dimensions or array.dtype.kind not in "biuf":
        raise ValueError(f"expected {what}, got {value!r:.80}")
    cast = array.astype(TYPES[kind])
    if kind != "f32" and (cast != array).any():
        raise ValueError(f"expected {what} of type {kind}, got {value!r:.80}")
    return cast


def parts_of(key, kind, per, value, count):
    """The arrays of `count` samples, from what the function returned."""
    if kind == "text":
        texts = [value] if alone else list(value)
        if len(texts) != count or not all(isinstance(t, str) for t in texts):
            raise ValueError(f"expected {key} to be {count} texts, got "
                             f"{value!r:.80}")
        return [numpy.frombuffer(t.encode(), numpy.uint8) for t in texts]
    if per == "token":
        rows = [value] if alone else list(value)
        if len(rows) != count:
            raise ValueError(f"expected {key} to be {count} arrays, got "
                             f"{len(rows)}")
        return [number_array(row, kind, 1, f"{key} to be an array of numbers")
                for row in rows]
    numbers = number_array(value, kind, 0 if alone else 1,
                           f"{key} to be {'a number' if alone else 'numbers'}")
    if numbers.size != count:
        raise ValueError(f"expected {key} to be {count} numbers, one for each "
                         f"sample, got {numbers.size}")
    return list(numbers.reshape(count, 1))


def named(value, carried):
    """{key: value} of what the function returned."""
    names = [key for key, _, _ in about["writes"]] + list(carried)
    if not isinstance(value, dict):
        if len(names) != 1:
            raise ValueError("expected a dict of " + ", ".join(names)
                             + f", got {value!r:.80}")
        return {names[0]: value}
    if set(value) != set(names):
        raise ValueError("expected a dict of " + ", ".join(names) + ", got one of "
                         + (", ".join(map(str, value)) or "nothing"))
    return value


def write(path, columns):
    """Writes lists of arrays; returns where they are."""
    places, at = [], 0
    with open(path, "r+b") as out:
        out.truncate(0)
        for arrays in columns:
            place = {}
            lengths = numpy.array([len(part) for part in arrays], numpy.uint32)
            for word, parts in (("lengths", [lengths]), ("data", arrays)):
                at += -at % ALIGNMENT
                place[word] = at
                out.seek(at)
                for part in parts:
                    at += out.write(part.tobytes())
            places.append(place)
    return places


def compute(line):
    with open(line["in"], "rb") as shared:
        memory = mmap.mmap(shared.fileno(), 0, access=mmap.ACCESS_READ)
    columns = {key: Column(memory, place, kind, per, line["num"])
               for (key, kind, per), place in zip(about["reads"], line["places"])}
    results = [[] for _ in about["writes"]]
    carried = dict(line["carried"])
    bounds = line["bounds"]
    for first, end in zip(bounds, bounds[1:]):
        line["now"] = first
        values = {key: column.one(first) if alone
                  else column.several(first, end)
                  for key, column in columns.items()}
        result = named(function(**values, **carried), carried)
        for parts, (key, kind, per) in zip(results, about["writes"]):
            parts += parts_of(key, kind, per, result[key], end - first)
        for key in carried:
            carried[key] = float(result[key])
            if not numpy.isfinite(carried[key]):
                raise ValueError(f"expected {key} to be finite, got "
                                 f"{carried[key]}")
    return {"places": write(line["out"], results), "carried": carried}


print("ready", file=answers, flush=True)
for text in sys.stdin:
    line = json.loads(text)
    try:
        answer = compute(line)
    except Exception as error:
        traceback.print_exc()
        answer = {"error": trouble_of(error, here), "sample": line.get("now", 0)}
    print(json.dumps({"id": line["id"], **answer}), file=answers, flush=True)
)python";

const char* scope_word(detail::UserKind kind) {
  if (kind == detail::UserKind::each)
    return "sample";
  return kind == detail::UserKind::groups ? "group" : "batch";
}

} // namespace

std::vector<std::string> python_function_command(const UserEntry& entry) {
  auto carried = nlohmann::json::array();
  for (const auto& value : entry.call.carried_out)
    carried.push_back(value.name);
  const nlohmann::json about = {{"scope", scope_word(entry.call.kind)},
                                {"reads", keys_json(entry.call.reads)},
                                {"writes", keys_json(entry.call.writes)},
                                {"carried", std::move(carried)}};
  return {"python3",
          "-c",
          python_file_loader(needs_numpy) + shim,
          entry.python->function.file,
          entry.python->function.name,
          about.dump()};
}

} // namespace troupe::actors
