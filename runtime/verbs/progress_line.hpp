// A line on stderr that says what a verb is at while a person waits: shown on a
// terminal only, written over by the next one and erased at the end.
#pragma once

#include "runtime/verbs/verb.hpp"

#include <string_view>

namespace troupe::runtime {

class ProgressLine {
public:
  explicit ProgressLine(const VerbOptions& options);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  void erase();

private:
  bool shows_;
};

} // namespace troupe::runtime
