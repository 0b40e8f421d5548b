#include "plans/memory/lengths.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::plans {

namespace {

/// Returns the mean of min(X, max) for an exponential X of this rate.
double cut_mean(double rate, double max) {
  return -std::expm1(-rate * max) / rate;
}

double solve_rate(double mean, double max) {
  double low = 1e-12, high = 2 / mean;
  for (int i = 0; i < 80; ++i) {
    const auto middle = (low + high) / 2;
    (cut_mean(middle, max) > mean ? low : high) = middle;
  }
  return high;
}

double take_length(std::string_view text) {
  double number = 0;
  const auto [end, error]
    = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !(number >= 1)
      || number > 1e9)
    throw std::invalid_argument("lengths are written MEAN or MEAN:MAX, tokens "
                                "from 1 on, got '"
                                + std::string(text) + "'");
  return number;
}

} // namespace

Lengths::Lengths(double prompt, double mean, double max)
  : prompt_(std::max(prompt, 0.0)),
    mean_(std::clamp(mean, 1.0, std::max(max, 1.0))),
    max_(std::max(max, 1.0)) {
  auto response_squares = max_ * max_;
  if (mean_ < max_ * 0.999) {
    rate_ = solve_rate(mean_, max_);
    response_squares = 2 / (rate_ * rate_)
                       * (1 - std::exp(-rate_ * max_) * (1 + rate_ * max_));
  } else {
    mean_ = max_;
  }
  squares_ = prompt_ * prompt_ + 2 * prompt_ * mean_ + response_squares;
}

Lengths::Lengths(double prompt, std::vector<double> responses)
  : prompt_(std::max(prompt, 0.0)) {
  std::ranges::sort(responses);
  double sum = 0;
  double squares = 0;
  for (double& length : responses) {
    length = std::max(length, 1.0);
    sum += length;
    squares += length * length;
  }
  const auto count = static_cast<double>(responses.size());
  mean_ = sum / count;
  max_ = responses.back();
  squares_ = prompt_ * prompt_ + 2 * prompt_ * mean_ + squares / count;
  if (responses.front() < max_)
    measured_
      = std::make_shared<const std::vector<double>>(std::move(responses));
}

double Lengths::survival(double tokens) const {
  if (tokens >= max_)
    return 0;
  if (measured_) {
    const auto longer = std::ranges::upper_bound(*measured_, tokens);
    return static_cast<double>(measured_->end() - longer)
           / static_cast<double>(measured_->size());
  }
  return rate_ == 0 ? 1 : std::exp(-rate_ * tokens);
}

std::vector<DecodePhase> Lengths::phases(double responses) const {
  if (rate_ == 0 && !measured_)
    return {{max_ - 1, responses, max_ / 2}};
  constexpr int num_phases = 24;
  std::vector<DecodePhase> phases;
  const auto width = max_ / num_phases;
  for (int i = 0; i < num_phases; ++i) {
    const auto middle = width * (i + 0.5);
    const auto alive = survival(middle);
    const auto some = -std::expm1(responses * std::log1p(-alive));
    if (some > 1e-9)
      phases.push_back({some * width, responses * alive / some, middle});
  }
  return phases;
}

std::vector<DecodePhase> Lengths::phases_from(const std::vector<double>& starts,
                                              double tokens,
                                              double responses) const {
  constexpr int num_phases = 12;
  std::vector<DecodePhase> phases;
  const auto width = tokens / num_phases;
  for (int i = 0; i < num_phases; ++i) {
    double alive = 0, context = 0, none_log = 0;
    for (const auto start : starts) {
      const auto middle = start + width * (i + 0.5);
      const auto share = survival(middle);
      alive += share;
      context += share * middle;
      none_log += responses * std::log1p(-share);
    }
    const auto some = -std::expm1(none_log);
    if (some > 1e-9)
      phases.push_back(
        {some * width, responses * alive / some, context / alive});
  }
  return phases;
}

DecodePhase Lengths::steady_phase(double responses) const {
  const auto response_squares
    = squares_ - prompt_ * prompt_ - 2 * prompt_ * mean_;
  return {mean_ - 1, responses, response_squares / (2 * mean_)};
}

Lengths parse_lengths(std::string_view text, double prompt) {
  const auto colon = text.find(':');
  const auto mean = take_length(text.substr(0, colon));
  const auto max = colon == std::string_view::npos
                     ? mean
                     : take_length(text.substr(colon + 1));
  if (max < mean)
    throw std::invalid_argument("the mean length is above the maximum, got '"
                                + std::string(text) + "'");
  return {prompt, mean, max};
}

} // namespace troupe::plans
