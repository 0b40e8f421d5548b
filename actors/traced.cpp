#include "actors/traced.hpp"

namespace troupe::actors {

std::string label_of(const caf::mailbox_element& element) {
  if (element.mid.is_response())
    return "reply";
  const auto& content = element.content();
  if (!content.empty() && content.match_element<caf::atom_value>(0))
    return caf::to_string(content.get_as<caf::atom_value>(0));
  return "message";
}

const Context* context_of(const caf::mailbox_element& element) {
  const auto& content = element.content();
  if (element.mid.is_response() || content.size() < 2
      || !content.match_element<Context>(1))
    return nullptr;
  return &content.get_as<Context>(1);
}

} // namespace troupe::actors
