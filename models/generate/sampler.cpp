#include "models/generate/sampler.hpp"

#include "config/base/error.hpp"
#include "models/kernels/host_math.hpp"
#include "models/kernels/host_simd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe::models {
namespace {

constexpr float sampler_removed = -std::numeric_limits<float>::infinity();

/// Floats summed in vector lanes before the total continues in double.
constexpr std::size_t sampler_block = 1024;

float sampler_max(std::span<const float> values) {
  const float* x = values.data();
  const std::size_t n = values.size();
  float best = sampler_removed;
  on_best_isa([&]() __attribute__((always_inline)) {
    float top = sampler_removed;
#pragma omp simd reduction(max : top)
    for (std::size_t i = 0; i < n; ++i)
      top = x[i] > top ? x[i] : top;
    best = top;
  });
  return best;
}

/// Returns the lowest index with `value`.
std::int32_t sampler_find(std::span<const float> values, float value) {
  const auto it = std::find(values.begin(), values.end(), value);
  return static_cast<std::int32_t>(it - values.begin());
}

} // namespace

void logits_are_not_finite() {
  throw FailureError({.code = Errc::numerics,
                      .who = "sampler",
                      .what = "the model's logits are not finite",
                      .cause = ""});
}

double log_sum_exp(std::span<const float> logits_V, double temperature) {
  const float top = sampler_max(logits_V);
  if (!std::isfinite(top))
    return top;
  const float* x = logits_V.data();
  const std::size_t n = logits_V.size();
  const auto inverse = static_cast<float>(1.0 / temperature);
  double total = 0;
  on_best_isa([&]() __attribute__((always_inline)) {
    for (std::size_t begin = 0; begin < n; begin += sampler_block) {
      const std::size_t end = std::min(n, begin + sampler_block);
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::size_t i = begin; i < end; ++i)
        sum += fast_exp((x[i] - top) * inverse);
      total += sum;
    }
  });
  return top / temperature + std::log(total);
}

Sampler::Sampler(const GenerateOptions& options, std::int64_t vocab_size)
  : options_(options),
    temperature_(options.temperature > 0 ? options.temperature : 1.0),
    greedy_(options.greedy || options.temperature <= 0),
    work_V_(static_cast<std::size_t>(vocab_size)),
    noise_V_(static_cast<std::size_t>(vocab_size)),
    seen_V_(static_cast<std::size_t>(vocab_size)) {}

bool Sampler::filters() const {
  return options_.top_k > 0 || options_.top_p < 1.0 || options_.min_p > 0
         || options_.repetition_penalty != 1.0;
}

DrawnToken Sampler::draw(std::span<const float> logits_V,
                         std::span<const std::int32_t> previous,
                         std::int64_t num_new, const DrawName& name) {
  const double total = log_sum_exp(logits_V, temperature_);
  if (!std::isfinite(total))
    logits_are_not_finite();
  const bool stop_is_banned
    = num_new < options_.min_new_tokens && !options_.stop_ids.empty();
  std::span<const float> allowed_V = logits_V;
  double divisor = temperature_;
  if (filters() || stop_is_banned) {
    std::copy(logits_V.begin(), logits_V.end(), work_V_.begin());
    if (stop_is_banned)
      ban_stop_ids(work_V_);
    filter(work_V_, previous);
    allowed_V = work_V_;
    divisor = 1;
  }
  DrawnToken drawn;
  if (greedy_)
    drawn.id = sampler_find(allowed_V, sampler_max(allowed_V));
  else
    drawn.id = argmax_with_noise(allowed_V, divisor, name);
  if (static_cast<std::size_t>(drawn.id) >= logits_V.size())
    logits_are_not_finite();
  const auto at = static_cast<std::size_t>(drawn.id);
  if (options_.record.logprobs == ResponseLogprobs::masked) {
    kept_.clear();
    for (std::size_t id = 0; id < allowed_V.size(); ++id)
      if (allowed_V[id] > sampler_removed)
        kept_.push_back(static_cast<std::int32_t>(id));
  }
  if (options_.record.logprobs != ResponseLogprobs::unfiltered && divisor == 1)
    drawn.logprob
      = static_cast<float>(allowed_V[at] - log_sum_exp(allowed_V, 1.0));
  else
    drawn.logprob
      = static_cast<float>(double{logits_V[at]} / temperature_ - total);
  return drawn;
}

void Sampler::ban_stop_ids(std::span<float> logits_V) const {
  for (const std::int32_t id : options_.stop_ids)
    if (id >= 0 && static_cast<std::size_t>(id) < logits_V.size())
      logits_V[static_cast<std::size_t>(id)] = sampler_removed;
}

std::int32_t Sampler::argmax_with_noise(std::span<const float> logits_V,
                                        double divisor, const DrawName& name) {
  gumbel_noise(name, 0, noise_V_);
  const float* x = logits_V.data();
  float* z = noise_V_.data();
  const std::size_t n = logits_V.size();
  const auto t = static_cast<float>(divisor);
  on_best_isa([&]() __attribute__((always_inline)) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i)
      z[i] += x[i] / t;
  });
  return sampler_find(noise_V_, sampler_max(noise_V_));
}

// -- filters ------------------------------------------------------------------

void Sampler::filter(std::span<float> logits_V,
                     std::span<const std::int32_t> previous) {
  if (options_.repetition_penalty != 1.0)
    penalize(logits_V, previous);
  if (temperature_ != 1.0) {
    const auto t = static_cast<float>(temperature_);
    for (float& logit : logits_V)
      logit /= t;
  }
  if (options_.top_k > 0)
    keep_top_k(logits_V);
  if (options_.top_p < 1.0)
    keep_top_p(logits_V);
  if (options_.min_p > 0)
    keep_min_p(logits_V);
}

void Sampler::penalize(std::span<float> logits_V,
                       std::span<const std::int32_t> previous) {
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (const std::int32_t id : previous) {
    const auto at = static_cast<std::size_t>(id);
    if (at >= logits_V.size() || seen_V_[at] != 0)
      continue;
    seen_V_[at] = 1;
    float& logit = logits_V[at];
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
  for (const std::int32_t id : previous)
    if (static_cast<std::size_t>(id) < seen_V_.size())
      seen_V_[static_cast<std::size_t>(id)] = 0;
}

void Sampler::keep_top_k(std::span<float> logits_V) {
  const auto k = static_cast<std::size_t>(options_.top_k);
  if (k >= logits_V.size())
    return;
  order_.assign(logits_V.begin(), logits_V.end());
  const auto kth = order_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(order_.begin(), kth, order_.end(), std::greater<>());
  const float least = *kth;
  for (float& logit : logits_V)
    if (logit < least)
      logit = sampler_removed;
  if (options_.record.logprobs == ResponseLogprobs::masked)
    keep_first_ties(logits_V, least);
}

/// Removes ties with the k-th logit, from the highest id on, until k are left.
void Sampler::keep_first_ties(std::span<float> logits_V, float least) const {
  auto left
    = options_.top_k - std::ranges::count_if(logits_V, [=](float logit) {
        return logit > least;
      });
  for (float& logit : logits_V)
    if (logit == least && left-- <= 0)
      logit = sampler_removed;
}

void Sampler::keep_top_p(std::span<float> logits_V) {
  by_id_.resize(logits_V.size());
  std::iota(by_id_.begin(), by_id_.end(), 0);
  const double total = log_sum_exp(logits_V, 1.0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const float x = logits_V[static_cast<std::size_t>(a)];
    const float y = logits_V[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  };
  // few tokens usually hold the mass: sort growing heads, not everything
  std::size_t sorted = 0;
  std::size_t kept = 0;
  double mass = 0;
  while (kept < by_id_.size() && (kept == 0 || mass < options_.top_p)) {
    if (kept == sorted) {
      const auto from = by_id_.begin() + static_cast<std::ptrdiff_t>(sorted);
      sorted = std::min(by_id_.size(), std::max<std::size_t>(64, 4 * sorted));
      const auto to = by_id_.begin() + static_cast<std::ptrdiff_t>(sorted);
      std::partial_sort(from, to, by_id_.end(), before);
    }
    const auto id = static_cast<std::size_t>(by_id_[kept++]);
    mass += std::exp(double{logits_V[id]} - total);
  }
  for (std::size_t i = kept; i < by_id_.size(); ++i)
    logits_V[static_cast<std::size_t>(by_id_[i])] = sampler_removed;
}

void Sampler::keep_min_p(std::span<float> logits_V) const {
  const float top = sampler_max(logits_V);
  for (float& logit : logits_V)
    if (std::exp(double{logit} - top) < options_.min_p)
      logit = sampler_removed;
}

} // namespace troupe::models
