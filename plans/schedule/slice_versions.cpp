#include "plans/schedule/slice_versions.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

std::string slices_text(const ExecutionPlan& plan,
                        std::int64_t max_new_tokens) {
  std::string text;
  for (const auto& [call, placement] : plan.calls) {
    const auto count = plan.slices_of(call);
    if (count == 1)
      continue;
    std::string versions;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto lag = slice_lag(plan.lag_of(call), {i, count});
      versions
        += (i > 0 ? ", n" : "n") + (lag > 0 ? fmt::format("-{}", lag) : "");
    }
    const auto size = max_new_tokens > 0
                        ? fmt::format(" of at most {} tokens",
                                      slice_limit(max_new_tokens, {0, count}))
                        : "";
    text += fmt::format("{} in {} slices{}, which step n generates with "
                        "versions {} (0 at least)\n",
                        call, count, size, versions);
  }
  return text;
}

std::vector<VersionSpan> version_spans(const ExecutionPlan& plan,
                                       const std::string& call, StepId step,
                                       std::int64_t max_new_tokens) {
  std::vector<VersionSpan> spans;
  std::int64_t first = 0;
  const auto count = plan.slices_of(call);
  for (std::uint32_t i = 0; i < count; ++i) {
    const SlicePart slice{i, count};
    const auto version = version_for(step, slice_lag(plan.lag_of(call), slice));
    if (spans.empty() || spans.back().version != version)
      spans.push_back({first, version});
    first = slice_limit(max_new_tokens, slice);
  }
  return spans;
}

std::int64_t older_tokens(const std::vector<VersionSpan>& spans,
                          std::int64_t tokens) {
  return std::min(tokens, spans.back().first_token);
}

std::int64_t lag_of_tokens(const std::vector<VersionSpan>& spans, StepId step,
                           std::int64_t tokens) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto end = i + 1 < spans.size() ? spans[i + 1].first_token : tokens;
    const auto count = std::min(end, tokens) - spans[i].first_token;
    const auto lag = step.value - spans[i].version.value;
    sum += std::max<std::int64_t>(count, 0) * static_cast<std::int64_t>(lag);
  }
  return sum;
}

} // namespace troupe::plans
