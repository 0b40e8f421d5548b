#include "runtime/planner/recorded_steps.hpp"

#include "runtime/base/jsonl_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace troupe::runtime {

std::vector<RecordedStep>
read_recorded_steps(const std::filesystem::path& metrics_file) {
  std::vector<RecordedStep> steps;
  std::stringstream text(read_file(metrics_file));
  for (std::string line; std::getline(text, line);) {
    const auto json
      = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("timing_s/step"))
      continue;
    std::map<std::string, double> numbers;
    for (const auto& [name, value] : json.items())
      if (value.is_number())
        numbers[name] = value.get<double>();
    steps.emplace_back(std::move(numbers));
  }
  return steps;
}

double median_of(std::vector<double> numbers) {
  const auto middle
    = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

} // namespace troupe::runtime
