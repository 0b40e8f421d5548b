// The end of a worker that died, as its log reports it.
#pragma once

#include <istream>
#include <string>

namespace troupe::runtime {

struct CrashReport {
  std::string
    work; ///< " in user-defined actor checker ..."; empty: not in user code
  std::string said; ///< the last line that is no warning
};

CrashReport crash_report_of(std::istream& log);

} // namespace troupe::runtime
