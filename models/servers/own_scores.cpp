#include "models/servers/own_scores.hpp"

#include "config/base/error.hpp"
#include "config/model/model_shape.hpp"
#include "models/engine/engine.hpp"
#include "net/base/rows.hpp"
#include "plans/memory/call_memory.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::models {

namespace {

std::vector<std::int32_t> checked_ids(const ModelShape& shape) {
  constexpr std::int64_t stride = 7919; // a prime
  const auto count
    = std::min(plans::served_check_tokens, shape.context_tokens() - 1);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(
      static_cast<std::int32_t>((13 + i * stride) % shape.vocab_size));
  return ids;
}

} // namespace

void OwnScores::compute(Engine& engine, const std::string& version,
                        RunContext& context) {
  if (version_ == version)
    return;
  ids_ = checked_ids(engine.shape());
  const auto length = static_cast<std::uint32_t>(ids_.size());
  net::Rows rows;
  rows.samples = {SampleId{}};
  rows.add(net::make_column("sequence_ids", DType::i32, {length}, ids_.data()));
  const auto scored = engine.infer("logprobs", rows, context);
  const auto scores = scored.at("logprobs").as<float>();
  logprobs_.assign(scores.begin(), scores.end());
  version_ = version;
}

double OwnScores::gap_to(std::span<const float> theirs) const {
  TROUPE_CHECK(version_ && theirs.size() == logprobs_.size(),
               "scores of other tokens");
  double gap = 0;
  for (std::size_t i = 1; i < theirs.size(); ++i) {
    const double here = std::abs(double{theirs[i]} - double{logprobs_[i]});
    if (std::isnan(here))
      return std::numeric_limits<double>::infinity();
    gap = std::max(gap, here);
  }
  return gap;
}

} // namespace troupe::models
