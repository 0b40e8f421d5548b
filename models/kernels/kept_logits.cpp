#include "models/kernels/kept_logits.hpp"

#include "models/kernels/threads.hpp"

#include <algorithm>
#include <vector>

namespace troupe::models {

namespace {

// Keeps the ids of one row; `found` is scratch memory.
void kept_row(const KeptIds& kept, std::span<const std::int32_t> ids,
              float* logits_V, std::vector<float>& found) {
  const auto here = [&](std::int32_t id) {
    return id >= kept.first_token && id < kept.first_token + kept.vocab;
  };
  found.clear();
  for (const std::int32_t id : ids)
    if (here(id))
      found.push_back(logits_V[id - kept.first_token]);
  std::fill_n(logits_V, kept.vocab, removed_logit);
  auto next = found.begin();
  for (const std::int32_t id : ids)
    if (here(id))
      logits_V[id - kept.first_token] = *next++;
}

} // namespace

void keep_logits(const KeptIds& kept, float* logits_RV) {
  parallel_for(0, kept.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> found;
    for (std::int64_t r = begin; r < end; ++r) {
      const auto at = static_cast<std::size_t>(r);
      const auto first = static_cast<std::size_t>(kept.offsets_R1[at]);
      const auto last = static_cast<std::size_t>(kept.offsets_R1[at + 1]);
      if (first < last)
        kept_row(kept, kept.ids.subspan(first, last - first),
                 logits_RV + r * kept.vocab, found);
    }
  });
}

} // namespace troupe::models
