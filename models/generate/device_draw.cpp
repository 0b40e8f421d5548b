#include "models/generate/device_draw.hpp"

namespace troupe::models {

std::optional<DrawFilters> device_filters(const GenerateOptions& options,
                                          std::int64_t vocab_size) {
  const bool bans_stops
    = options.min_new_tokens > 0 && !options.stop_ids.empty();
  if (options.repetition_penalty != 1.0 || bans_stops
      || options.record.logprobs == ResponseLogprobs::masked
      || vocab_size > DrawRows::most_vocab)
    return std::nullopt;
  const bool scales = options.temperature > 0;
  return DrawFilters{.temperature = scales ? options.temperature : 1.0,
                     .greedy = options.greedy || !scales,
                     .top_k = options.top_k,
                     .top_p = options.top_p,
                     .min_p = options.min_p,
                     .filtered_logprobs
                     = options.record.logprobs == ResponseLogprobs::sampled};
}

DrawKey draw_key(const DrawName& name) {
  const PhiloxKey key = philox_key(name);
  return {{key[0], key[1]}, name.sample, name.position};
}

} // namespace troupe::models
