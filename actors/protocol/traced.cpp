#include "actors/protocol/traced.hpp"

#include "troupe/sample.hpp"

namespace troupe::actors {

std::string label_of(const caf::mailbox_element& element) {
  if (element.mid.is_response())
    return "reply";
  const auto& content = element.content();
  if (!content.empty() && content.match_element<caf::atom_value>(0))
    return caf::to_string(content.get_as<caf::atom_value>(0));
  return "message";
}

Context context_of(const caf::mailbox_element& element) {
  const auto& content = element.content();
  if (element.mid.is_response() || content.size() < 2)
    return {};
  if (content.match_element<Context>(1))
    return content.get_as<Context>(1);
  if (!content.match_element<Sample>(1))
    return {};
  const auto arrow = content.get_as<Sample>(1).arrow();
  return {.flow = arrow.flow, .step = StepId{arrow.step}, .incarnation = {}};
}

} // namespace troupe::actors
