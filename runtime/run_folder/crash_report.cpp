#include "runtime/run_folder/crash_report.hpp"

#include "config/base/log.hpp"

#include "troupe/detail/crash_context.hpp"

namespace troupe::runtime {

CrashReport crash_report_of(std::istream& log) {
  CrashReport words;
  for (std::string line; std::getline(log, line);)
    if (line.starts_with(crash_prefix))
      words.work = " in " + line.substr(crash_prefix.size());
    else if (!line.empty() && line.find(" warning ") != log::stamp_length)
      words.said = line;
  return words;
}

} // namespace troupe::runtime
