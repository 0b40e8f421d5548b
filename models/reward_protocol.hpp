// What reward programs and servers read and write (INTERFACE, "Reward
// programs"): {id, prompt, response, ground_truth, data_source, extra_info} in,
// {id, score, extra?: {name: number}} out, one JSON line each.
#pragma once

#include "models/reward.hpp"

#include <optional>
#include <string_view>

namespace troupe::models {

/// The request without its id: equal for answers that deserve equal scores.
std::string request_content(const RewardItem& item);
/// The request of the content with its id put in front.
std::string request_line(const std::string& content, std::uint64_t id);

/// The id of an answer; nothing where it is no JSON object with one.
std::optional<std::uint64_t> answer_id(std::string_view answer);
/// Parts "score" and those of `extra`; a trouble where `score` is no number or
/// the answer says `error`.
RewardScore read_answer(std::string_view answer);

} // namespace troupe::models
