#include "models/rl/response_lengths.hpp"

#include <algorithm>

namespace troupe::models {

void add_moments(MetricSums& sums, const std::string& name,
                 const Moments& moments) {
  if (moments.count == 0)
    return;
  sums.add(name + "/mean", moments.sum, moments.count);
  sums.add_max(name + "/max", moments.max);
  sums.add_min(name + "/min", moments.min);
}

void ResponseLengths::add(Mask mask, bool truncated) {
  responses_.add(static_cast<double>(std::count(mask.begin(), mask.end(), 1)));
  prompts_.add(
    static_cast<double>(std::find(mask.begin(), mask.end(), 1) - mask.begin()));
  truncated_ += truncated ? 1 : 0;
}

void ResponseLengths::report(MetricSums& sums) const {
  add_moments(sums, "response_length", responses_);
  add_moments(sums, "prompt_length", prompts_);
  if (responses_.count > 0)
    sums.add("response_length/clip_ratio", truncated_, responses_.count);
}

FunctionResult response_lengths(const net::Rows& rows,
                                const FunctionContext& context) {
  const net::Column& masks = rows.at("loss_mask");
  const auto truncated = rows.at("truncated").as<std::uint8_t>();
  const auto offsets = masks.offsets();
  ResponseLengths lengths;
  for (std::size_t i = 0; i < rows.num_samples(); ++i)
    lengths.add(
      masks.as<std::uint8_t>().subspan(offsets[i], offsets[i + 1] - offsets[i]),
      truncated[i] != 0);
  FunctionResult result;
  result.rows.samples = rows.samples;
  result.carried = context.carried;
  lengths.report(result.sums);
  return result;
}

FunctionEntry response_lengths_entry() {
  return {.name = "response_lengths",
          .function = &response_lengths,
          .reads = {{"loss_mask"}, {"truncated"}}};
}

} // namespace troupe::models
