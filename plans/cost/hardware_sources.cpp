#include "plans/cost/hardware_sources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace troupe::plans {

namespace {

constexpr std::string_view source_words[]
  = {"measured", "fitted", "spec", "assumed"};

/// Returns whether a source of a shipped file names published measurements.
bool is_fitted_to_published(std::string_view source) {
  return kind_of_source(source) == SourceKind::fitted
         && source.find("published") != std::string_view::npos;
}

/// Describes how far the hardware's numbers are from being measured there.
std::string distance_to_measurements(const Hardware& hardware) {
  if (is_profiled(hardware))
    return "";
  const auto fitted
    = std::ranges::count_if(hardware.sources, [](const auto& one) {
        return is_fitted_to_published(one.second);
      });
  if (fitted > 0)
    return fmt::format(", fitted to published measurements ({} numbers)",
                       fitted);
  return ", never measured on this hardware";
}

} // namespace

const char* to_string(SourceKind kind) {
  switch (kind) {
  case SourceKind::measured:
    return "measured";
  case SourceKind::fitted:
    return "fitted";
  case SourceKind::data_sheet:
    return "data sheet";
  case SourceKind::assumed:
    return "assumed";
  case SourceKind::given:
    break;
  }
  return "given";
}

SourceKind kind_of_source(std::string_view source) {
  const auto word = source.substr(0, source.find_first_of(":, "));
  for (std::size_t i = 0; i < std::size(source_words); ++i)
    if (word == source_words[i])
      return static_cast<SourceKind>(i);
  return SourceKind::given;
}

SourceCounts count_sources(const Hardware& hardware) {
  SourceCounts counts;
  for (const auto& [path, source] : hardware.sources)
    ++counts.of[static_cast<std::size_t>(kind_of_source(source))];
  return counts;
}

bool is_profiled(const Hardware& hardware) {
  return hardware.name.starts_with("profiled on ");
}

std::string basis_of(const Hardware& hardware) {
  const auto counts = count_sources(hardware);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < num_source_kinds; ++i) {
    const auto kind = static_cast<SourceKind>(i);
    if (counts[kind] > 0)
      parts.push_back(fmt::format(
        "{} {}", counts[kind],
        kind == SourceKind::data_sheet ? "from data sheets" : to_string(kind)));
  }
  return fmt::format("predicted for {}{}: of its numbers {}", hardware.name,
                     distance_to_measurements(hardware),
                     fmt::join(parts, ", "));
}

} // namespace troupe::plans
