#include "runtime/page/feed_message.hpp"

#include <nlohmann/json.hpp>

namespace troupe::runtime {

FeedMessage text_message(const std::string& type, const std::string& text) {
  using nlohmann::json;
  return {false, json{{"type", type}, {"text", text}}.dump(
                   -1, ' ', false, json::error_handler_t::replace)};
}

} // namespace troupe::runtime
