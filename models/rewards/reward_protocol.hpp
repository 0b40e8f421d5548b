// Messages of reward programs and servers: {id, prompt, response, ground_truth,
// data_source, extra_info} in, {id, score, extra?: {name: number}} out, one
// JSON line each.
#pragma once

#include "models/rewards/reward.hpp"

#include <optional>
#include <string_view>

namespace troupe::models {

/// Returns the request without its id: equal for responses that must get equal
/// scores.
std::string request_content(const RewardItem& item);
/// Returns the request of the content with its id prepended.
std::string request_line(const std::string& content, std::uint64_t id);

/// Returns the id of an answer; nullopt if it is not a JSON object with an id.
std::optional<std::uint64_t> reply_id(std::string_view reply);
/// Returns parts "score" and those of `extra`; an error if `score` is not a
/// number or the answer contains `error`.
RewardScore read_reply(std::string_view reply);

} // namespace troupe::models
