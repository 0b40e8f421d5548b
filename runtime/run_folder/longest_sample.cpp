#include "runtime/run_folder/longest_sample.hpp"

#include "config/base/error.hpp"
#include "runtime/base/lines_backward.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string_view>

namespace troupe::runtime {

namespace {

struct SampleLength {
  std::uint64_t step = 0;
  std::uint64_t sample = 0;
  std::int64_t num_tokens = -1; ///< the model's own tokens
};

SampleLength read_length(std::string_view line,
                         const std::filesystem::path& file) {
  try {
    const auto row = nlohmann::json::parse(line);
    SampleLength length{row.at("step"), row.at("sample"), 0};
    for (const auto& own : row.at("loss_mask"))
      length.num_tokens += own.get<double>() != 0 ? 1 : 0;
    return length;
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError({file.string(), 0},
                      fmt::format("no record of a sample: {}", error.what()));
  }
}

} // namespace

std::string longest_sample(const std::filesystem::path& samples_file) {
  if (!std::filesystem::exists(samples_file))
    return "";
  LinesBackward lines(samples_file);
  SampleLength longest;
  while (const auto line = lines.next()) {
    if (!line->whole)
      continue;
    const auto length = read_length(line->text, samples_file);
    if (longest.num_tokens >= 0 && length.step != longest.step)
      break;
    if (length.num_tokens >= longest.num_tokens)
      longest = length;
  }
  if (longest.num_tokens < 0)
    return "";
  return fmt::format("step {} sample {}, {} tokens", longest.step,
                     longest.sample, longest.num_tokens);
}

} // namespace troupe::runtime
