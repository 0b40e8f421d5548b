#include "runtime/base/processor_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <set>

namespace troupe::runtime {

namespace {

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      return line.substr(line.find(':') + 2);
  return "an unknown processor";
}

} // namespace

std::string profiled_name(const std::vector<std::string>& gpus) {
  const std::set<std::string> kinds(gpus.begin(), gpus.end());
  return fmt::format("profiled on {}{}{}", fmt::join(kinds, " and "),
                     kinds.empty() ? "" : ", ", processor_name());
}

} // namespace troupe::runtime
