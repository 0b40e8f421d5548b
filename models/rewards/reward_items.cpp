#include "models/rewards/reward_items.hpp"

#include "models/data/dataset.hpp"
#include "models/text/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace troupe::models {

namespace {

template <class T>
std::span<const T> item_elements(const net::Column& column, std::size_t i) {
  const auto offsets = column.offsets();
  return column.as<T>().subspan(offsets[i], column.lengths[i]);
}

/// Returns what the program of sample i said; a failed session is NaN.
std::optional<float> agent_reward_of(const net::Rows& rows, std::size_t i) {
  if (!rows.has("agent_rewards"))
    return std::nullopt;
  const auto reward = item_elements<float>(rows.at("agent_rewards"), i).front();
  return std::isnan(reward) ? std::nullopt : std::optional(reward);
}

} // namespace

std::vector<RewardItem> reward_items(const ResponseSource& source,
                                     const net::Rows& rows) {
  std::vector<RewardItem> items;
  for (std::size_t i = 0; i < rows.num_samples(); ++i) {
    const auto sample = rows.samples[i].value;
    const auto row = source.rows.at(sample / source.samples_per_row);
    const auto mask = item_elements<std::uint8_t>(rows.at("loss_mask"), i);
    // the response begins at the model's first own token
    const auto prompt
      = static_cast<std::size_t>(std::ranges::find(mask, 1) - mask.begin());
    const auto response
      = item_elements<std::int32_t>(rows.at("sequence_ids"), i).subspan(prompt);
    auto text = source.data.text(row);
    items.push_back(
      {.id = fmt::format("step {} sample {}", step_number(source.step), sample),
       .requester = source.requester,
       .prompt = std::move(text.prompt),
       .response = source.tokenizer.decode(response),
       .ground_truth = std::move(text.ground_truth),
       .data_source = std::move(text.data_source),
       .extra_info = std::move(text.extra_info),
       .num_tokens = static_cast<std::uint32_t>(response.size()),
       .place = {source.files.at(source.data.file_of(row)), text.line},
       .agent_reward = agent_reward_of(rows, i)});
  }
  return items;
}

} // namespace troupe::models
