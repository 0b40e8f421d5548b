// Draws of the deferred device: the host's sampler, with its bits, when the
// kernel runs.
#include "config/base/error.hpp"
#include "models/generate/sampler.hpp"

#include "deferred_backend.hpp"

namespace troupe::testing {

using namespace models;

namespace {

GenerateOptions options_of(const DrawFilters& filters) {
  GenerateOptions options;
  options.temperature = filters.temperature;
  options.greedy = filters.greedy;
  options.top_k = filters.top_k;
  options.top_p = filters.top_p;
  options.min_p = filters.min_p;
  if (filters.filtered_logprobs)
    options.record.logprobs = ResponseLogprobs::sampled;
  return options;
}

DrawnToken drawn_of(Sampler& sampler, std::span<const float> logits_V,
                    const DrawKey& key) {
  try {
    return sampler.draw(logits_V, {}, 0,
                        {key.key[0], key.key[1], key.sample, key.position});
  } catch (const FailureError&) {
    return {.id = -1};
  }
}

} // namespace

void DeferredBackend::draw(const DrawRows& what, const float* logits_RV,
                           const DrawKey* keys_R, DrawnToken* drawn_R) {
  later([=, this] {
    ++drawn_;
    Sampler sampler(options_of(what.filters), what.vocab);
    for (std::int64_t row = 0; row < what.rows; ++row)
      drawn_R[row] = drawn_of(
        sampler,
        {logits_RV + row * what.vocab, static_cast<std::size_t>(what.vocab)},
        keys_R[row]);
  });
}

} // namespace troupe::testing
