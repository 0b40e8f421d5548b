#include "net/line_answers.hpp"

#include <fmt/format.h>

namespace troupe::net {

std::string AnswerDeadline::text() const {
  const auto named = setting.empty() ? "" : " (" + setting + ")";
  return fmt::format("no answer within {:g} s{}", silence.count(), named);
}

} // namespace troupe::net
