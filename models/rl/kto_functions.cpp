#include "models/rl/kto_functions.hpp"

#include "config/settings/settings.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::models {
namespace {

/// One sample's tokens with their mask.
struct MaskedTokens {
  std::span<const std::int32_t> ids;
  std::span<const std::uint8_t> mask;

  /// Returns the number of tokens before the first with mask 1.
  std::size_t prompt() const {
    return static_cast<std::size_t>(std::ranges::find(mask, 1) - mask.begin());
  }
};

std::vector<MaskedTokens> masked_tokens(const net::Rows& rows) {
  const auto& ids = rows.at("sequence_ids");
  const auto& masks = rows.at("loss_mask");
  const auto offsets = ids.offsets();
  std::vector<MaskedTokens> samples;
  for (std::size_t i = 0; i < rows.num_samples(); ++i)
    samples.push_back(
      {ids.as<std::int32_t>().subspan(offsets[i], ids.lengths[i]),
       masks.as<std::uint8_t>().subspan(offsets[i], ids.lengths[i])});
  return samples;
}

/// Returns the samples' positions in ascending order of their ids: rows may
/// come in any order, neighbours are those of the step.
std::vector<std::size_t> by_sample(const net::Rows& rows) {
  std::vector<std::size_t> order(rows.num_samples());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return rows.samples[i]; });
  return order;
}

} // namespace

FunctionResult kto_mismatch(const net::Rows& rows,
                            const FunctionContext& context) {
  const auto samples = masked_tokens(rows);
  const auto order = by_sample(rows);
  std::vector<std::size_t> before(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    before[order[k]] = order[(k + order.size() - 1) % order.size()];
  const auto most = static_cast<std::size_t>(context.settings.data.max_tokens);
  std::vector<std::uint32_t> lengths;
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> masks;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto& own = samples[i];
    const auto& other = samples[before[i]];
    const auto prompt = own.prompt();
    const auto skipped = other.prompt();
    const auto added
      = std::min(other.ids.size() - skipped, most - std::min(most, prompt));
    ids.insert(ids.end(), own.ids.begin(), own.ids.begin() + prompt);
    masks.insert(masks.end(), prompt, 0);
    const auto completion = other.ids.subspan(skipped, added);
    const auto mask = other.mask.subspan(skipped, added);
    ids.insert(ids.end(), completion.begin(), completion.end());
    masks.insert(masks.end(), mask.begin(), mask.end());
    lengths.push_back(static_cast<std::uint32_t>(prompt + added));
  }
  FunctionResult result;
  result.rows.samples = rows.samples;
  result.rows.add(
    net::make_column("kl_sequence_ids", DType::i32, lengths, ids.data()));
  result.rows.add(
    net::make_column("kl_loss_mask", DType::u8, lengths, masks.data()));
  return result;
}

FunctionEntry kto_mismatch_entry() {
  return {.name = "kto_mismatch",
          .function = &kto_mismatch,
          .reads = {{"sequence_ids"}, {"loss_mask"}}};
}

double kto_point(const net::Rows& rows, const std::string& prefix) {
  const auto& masks = rows.at(prefix + "kl_loss_mask");
  const auto mask = masks.as<std::uint8_t>();
  const auto policy = rows.at(prefix + "kl_logprobs").as<float>();
  const auto reference = rows.at(prefix + "kl_ref_logprobs").as<float>();
  const auto offsets = masks.offsets();
  double sum = 0;
  for (const auto i : by_sample(rows)) // a sum that no order of arrival changes
    for (auto t = offsets[i] + 1; t < offsets[i + 1]; ++t)
      if (mask[t] != 0)
        sum += double{policy[t]} - double{reference[t]};
  const auto samples = std::max<std::size_t>(1, rows.num_samples());
  return std::max(0.0, sum / static_cast<double>(samples));
}

FunctionResult kto_kl(const net::Rows& rows, const FunctionContext&) {
  const double mean = kto_point(rows);
  const std::vector<float> points(rows.num_samples(), static_cast<float>(mean));
  FunctionResult result;
  result.rows.samples = rows.samples;
  result.rows.add(net::make_column("kl_point", DType::f32,
                                   std::vector<std::uint32_t>(points.size(), 1),
                                   points.data()));
  result.sums.add("train/kl", mean, 1);
  return result;
}

FunctionEntry kto_kl_entry() {
  return {.name = "kto_kl",
          .function = &kto_kl,
          .reads = {{"kl_loss_mask"}, {"kl_logprobs"}, {"kl_ref_logprobs"}}};
}

} // namespace troupe::models
