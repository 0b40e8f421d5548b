#include "models/rl/cov_tokens.hpp"

#include "config/base/text_hash.hpp"
#include "config/settings/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace troupe::models {
namespace {

/// Mixes all bits of x into all of the result: the finalizer of SplitMix64
/// (Steele et al. 2014), since text_hash leaves neighbours near each other.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Returns a number that orders the tokens of a step at random.
std::uint64_t draw(const FunctionContext& context, SampleId sample,
                   std::size_t token) {
  return mixed(text_hash(fmt::format("{} {} {} {}", context.settings.run.seed,
                                     context.step.value, sample.value, token)));
}

/// Returns the tokens that Clip-Cov may draw, each with its number.
std::vector<std::pair<std::uint64_t, std::size_t>>
drawn_tokens(const net::Rows& rows, const RolloutBatch& batch,
             std::span<const double> cov_T, const FunctionContext& context) {
  const auto [least, most] = context.settings.algorithm.loss.cov_range;
  std::vector<std::pair<std::uint64_t, std::size_t>> drawn;
  for (std::size_t i = 0; i < batch.num_samples(); ++i) {
    const auto first = static_cast<std::size_t>(batch.offsets()[i]);
    const Mask mask = batch.mask(i);
    for (std::size_t t = 0; t < mask.size(); ++t)
      if (mask[t] != 0 && cov_T[first + t] > least && cov_T[first + t] < most)
        drawn.emplace_back(draw(context, rows.samples[i], t), first + t);
  }
  return drawn;
}

std::vector<std::size_t> random_tokens(const net::Rows& rows,
                                       const RolloutBatch& batch,
                                       std::span<const double> cov_T,
                                       const FunctionContext& context,
                                       std::size_t count) {
  auto drawn = drawn_tokens(rows, batch, cov_T, context);
  const auto kept = std::min(count, drawn.size());
  std::ranges::partial_sort(drawn,
                            drawn.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<std::size_t> tokens;
  for (std::size_t i = 0; i < kept; ++i)
    tokens.push_back(drawn[i].second);
  return tokens;
}

} // namespace

std::vector<double> token_covariances(std::span<const float> logprobs_T,
                                      std::span<const float> advantages_T,
                                      Mask mask_T) {
  Moments logprobs;
  Moments advantages;
  logprobs.add(logprobs_T, mask_T);
  advantages.add(advantages_T, mask_T);
  std::vector<double> cov_T(mask_T.size());
  for (std::size_t t = 0; t < mask_T.size(); ++t)
    if (mask_T[t] != 0)
      cov_T[t] = (logprobs_T[t] - logprobs.mean())
                 * (advantages_T[t] - advantages.mean());
  return cov_T;
}

std::vector<std::size_t> largest_covariances(std::span<const double> cov_T,
                                             Mask mask_T, std::size_t count) {
  std::vector<std::size_t> tokens;
  for (std::size_t t = 0; t < mask_T.size(); ++t)
    if (mask_T[t] != 0)
      tokens.push_back(t);
  count = std::min(count, tokens.size());
  std::ranges::partial_sort(
    tokens, tokens.begin() + static_cast<std::ptrdiff_t>(count),
    [&](std::size_t a, std::size_t b) {
      return cov_T[a] != cov_T[b] ? cov_T[a] > cov_T[b] : a < b;
    });
  tokens.resize(count);
  return tokens;
}

void add_cov_tokens(net::Rows& rows, const RolloutBatch& batch,
                    std::span<const float> advantages_T,
                    std::span<const float> logprobs_T,
                    const FunctionContext& context) {
  const PolicyLossSettings& loss = context.settings.algorithm.loss;
  const Mask mask_T = batch.mask();
  const auto cov_T = token_covariances(logprobs_T, advantages_T, mask_T);
  const auto tokens = static_cast<double>(
    std::ranges::count_if(mask_T, [](std::uint8_t own) { return own != 0; }));
  const auto count = std::max<std::size_t>(
    1, static_cast<std::size_t>(loss.cov_share * tokens));
  const auto chosen = loss.kind == "kl_cov"
                        ? largest_covariances(cov_T, mask_T, count)
                        : random_tokens(rows, batch, cov_T, context, count);
  std::vector<float> chosen_T(mask_T.size());
  for (const std::size_t t : chosen)
    chosen_T[t] = 1;
  add_token_column(rows, batch, "cov_tokens", chosen_T);
}

} // namespace troupe::models
