// A line on stderr that shows a command's progress: on a terminal only,
// overwritten by the next one and erased at the end.
#pragma once

#include "runtime/planner/command_options.hpp"

#include <string_view>

namespace troupe::runtime {

class ProgressLine {
public:
  explicit ProgressLine(const CommandOptions& options);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  void erase();

private:
  bool shows_;
};

} // namespace troupe::runtime
