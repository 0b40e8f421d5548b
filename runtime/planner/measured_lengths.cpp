#include "runtime/planner/measured_lengths.hpp"

#include "config/base/error.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <fstream>
#include <optional>
#include <string>

namespace troupe::runtime {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Returns the tokens that a sample of samples.jsonl was trained on.
std::optional<double> length_of_sample(const std::string& line) {
  const json sample = json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto mask
    = sample.is_object() ? sample.find("loss_mask") : sample.end();
  if (!sample.is_object() || mask == sample.end() || !mask->is_array())
    return std::nullopt;
  double length = 0;
  for (const json& token : *mask)
    length += token.is_number() && token != 0 ? 1 : 0;
  return length;
}

std::optional<double> length_in(const std::string& line) {
  if (line.starts_with('{'))
    return length_of_sample(line);
  double length = 0;
  const char* last = line.data() + line.size();
  const auto [end, error] = std::from_chars(line.data(), last, length);
  if (error != std::errc{} || end != last || !(length >= 0 && length <= 1e9))
    return std::nullopt;
  return length;
}

[[noreturn]] void refuse_lengths(const fs::path& file, int line,
                                 const std::string& got) {
  throw ConfigError({.place = {file.string(), line},
                     .path = "--response-tokens",
                     .expected = "lengths of responses: a run's samples.jsonl, "
                                 "or a number per line",
                     .got = got,
                     .hint = "256:1024, a mean and a maximum"});
}

} // namespace

std::vector<double> read_response_lengths(const fs::path& from) {
  const fs::path file = fs::is_directory(from) ? from / "samples.jsonl" : from;
  std::ifstream in(file);
  if (!in)
    refuse_lengths(file, 0, "no readable file");
  std::vector<double> lengths;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty())
      continue;
    const auto length = length_in(line);
    if (!length)
      refuse_lengths(file, number, "'" + line.substr(0, 40) + "'");
    lengths.push_back(*length);
  }
  if (lengths.empty())
    refuse_lengths(file, 0, "none");
  return lengths;
}

} // namespace troupe::runtime
