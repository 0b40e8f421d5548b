#include "runtime/base/processor_name.hpp"

#include <fstream>

namespace troupe::runtime {

std::string profiled_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      return "profiled on " + line.substr(line.find(':') + 2);
  return "profiled on an unknown processor";
}

} // namespace troupe::runtime
