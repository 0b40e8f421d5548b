#include "net/child_programs/line_replies.hpp"

#include <fmt/format.h>

namespace troupe::net {

std::string ReplyDeadline::text() const {
  const auto named = setting.empty() ? "" : " (" + setting + ")";
  return fmt::format("no answer within {:g} s{}", silence.count(), named);
}

} // namespace troupe::net
