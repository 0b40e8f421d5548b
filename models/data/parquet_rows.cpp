#include "models/data/parquet_rows.hpp"

#include "config/base/error.hpp"
#include "net/child_programs/child_pool.hpp"

#include <chrono>
#include <fstream>
#include <string>
#include <system_error>

namespace troupe::models {

namespace fs = std::filesystem;

namespace {

// what it says on standard error becomes the error that users see
constexpr const char* parquet_helper = R"python(
import base64, datetime, decimal, json, math, sys

source, target = sys.argv[1:3]
try:
    import pyarrow.parquet
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return plain(float(value))
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def line_of(row):
    return json.dumps(plain(row), ensure_ascii=False) + "\n"


def rows_of(batch):
    try:
        return batch.to_pylist(maps_as_pydicts="lossy")
    except TypeError:  # an older pyarrow, whose maps are lists of pairs
        return batch.to_pylist()


def convert():
    table = pyarrow.parquet.ParquetFile(source)
    with open(target, "w", encoding="utf-8", newline="\n") as out:
        for batch in table.iter_batches(batch_size=1024):
            out.writelines(map(line_of, rows_of(batch)))


try:
    convert()
except (pyarrow.ArrowException, OSError, ValueError) as error:
    print(" ".join(str(error).split()), file=sys.stderr)
    sys.exit(4)
)python";

constexpr int no_pyarrow = 3;
constexpr int unreadable_parquet = 4;

std::string quoted(const fs::path& path) {
  return "'" + path.string() + "'";
}

/// Returns the command that converts a file by hand, where pandas is.
std::string conversion_of(const fs::path& file) {
  auto target = file;
  return "python3 -c \"import pandas; pandas.read_parquet(" + quoted(file)
         + ").to_json(" + quoted(target.replace_extension(".jsonl"))
         + ", orient='records', lines=True)\"";
}

[[noreturn]] void refuse(const fs::path& file, const std::string& expected,
                         const std::string& got, const std::string& hint) {
  throw ConfigError({.place = {file.string(), 0},
                     .path = "",
                     .expected = expected,
                     .got = got,
                     .hint = hint});
}

std::string last_line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string last;
  for (std::string line; std::getline(stream, line);)
    if (!line.empty())
      last = line;
  return last;
}

/// Runs the helper to its end.
net::ChildExit run_helper(const fs::path& file, const fs::path& target,
                          const fs::path& said) {
  net::ChildExit exit;
  net::ChildPool pool([&](const net::ChildExit& ended) { exit = ended; });
  net::ChildSpec spec;
  spec.name = "the reader of " + file.string();
  spec.argv = {"python3", "-c", parquet_helper, file.string(), target.string()};
  spec.output_file = said;
  pool.start(std::move(spec));
  while (!pool.wait_all(std::chrono::seconds{10})) {
    // a large file takes minutes, and the helper ends with this process
  }
  return exit;
}

} // namespace

bool is_parquet(std::string_view bytes) {
  return bytes.starts_with("PAR1");
}

void write_parquet_rows(const fs::path& file, const fs::path& target) {
  const fs::path said = target.string() + ".said";
  net::ChildExit exit;
  try {
    exit = run_helper(file, target, said);
  } catch (const FailureError& error) {
    refuse(file, "python3 with pyarrow, which reads a Parquet file",
           error.failure().what, conversion_of(file));
  }
  const auto complaint = last_line_of(said);
  std::error_code ignored;
  fs::remove(said, ignored);
  if (exit.code == 0 && exit.signal == 0)
    return;
  if (exit.code == no_pyarrow)
    refuse(file, "python3 with pyarrow, which reads a Parquet file",
           "one without (" + complaint + ")",
           "`python3 -m pip install pyarrow`, or " + conversion_of(file));
  refuse(file, "a Parquet file that pyarrow reads",
         exit.code == unreadable_parquet ? complaint
                                         : to_string(exit) + ": " + complaint,
         conversion_of(file));
}

} // namespace troupe::models
