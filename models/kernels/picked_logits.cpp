#include "models/kernels/picked_logits.hpp"

#include "models/kernels/threads.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace troupe::models {

namespace {

constexpr float picked_nothing = -std::numeric_limits<float>::infinity();

struct PickedCandidate {
  float logit;
  std::int32_t id;
  // Whether it comes before another one of the same row.
  bool operator<(const PickedCandidate& other) const {
    return logit != other.logit ? logit > other.logit : id < other.id;
  }
};

// Leaves the `count` largest of a row in `heap`, sorted.
void picked_largest(const float* logits, std::int64_t vocab, std::size_t count,
                    std::vector<PickedCandidate>& heap) {
  heap.clear();
  for (std::int64_t j = 0; j < vocab; ++j) {
    const PickedCandidate next{logits[j], static_cast<std::int32_t>(j)};
    if (heap.size() < count) {
      heap.push_back(next);
      std::push_heap(heap.begin(), heap.end());
    } else if (next < heap.front()) {
      std::pop_heap(heap.begin(), heap.end());
      heap.back() = next;
      std::push_heap(heap.begin(), heap.end());
    }
  }
  std::sort_heap(heap.begin(), heap.end());
}

} // namespace

void picked_logits(const PickedIds& picked, const float* logits_RV,
                   float* to_RK) {
  for (std::int64_t r = 0; r < picked.rows; ++r)
    for (std::int64_t k = 0; k < picked.per_row; ++k) {
      const std::int64_t entry = r * picked.per_row + k;
      const std::int64_t id = picked.ids_RK[static_cast<std::size_t>(entry)];
      const bool here = id >= 0 && id < picked.vocab;
      to_RK[entry] = here ? logits_RV[r * picked.vocab + id] : picked_nothing;
    }
}

void join_picked(const PickedIds& picked, std::uint32_t peers,
                 const float* logits_PRK, const float* lse_R,
                 const PickedStatistics& found) {
  const std::int64_t entries = picked.rows * picked.per_row;
  for (std::int64_t entry = 0; entry < entries; ++entry) {
    float logit = logits_PRK[entry];
    for (std::uint32_t p = 1; p < peers; ++p)
      logit = std::max(logit, logits_PRK[p * entries + entry]);
    found.logits_RK[entry] = logit;
    found.logprobs_RK[entry]
      = logit * picked.inverse_temperature - lse_R[entry / picked.per_row];
  }
}

void picked_gradient(const PickedIds& picked, const float* logits_RK,
                     const float* d_logprobs_RK, float* d_logits_RV) {
  for (std::int64_t r = 0; r < picked.rows; ++r)
    for (std::int64_t k = 0; k < picked.per_row; ++k) {
      const std::int64_t entry = r * picked.per_row + k;
      const std::int64_t id = picked.ids_RK[static_cast<std::size_t>(entry)];
      if (id < 0 || id >= picked.vocab)
        continue;
      const float t = logits_RK[entry] * picked.inverse_cap;
      d_logits_RV[r * picked.vocab + id]
        += picked.inverse_temperature * d_logprobs_RK[entry] * (1.0F - t * t);
    }
}

void largest_logits(const LargestLogits& shape, const float* logits_RV,
                    float* values_RK, std::int32_t* ids_RK) {
  const auto count = static_cast<std::size_t>(shape.per_row);
  parallel_for(0, shape.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<PickedCandidate> heap;
    for (std::int64_t r = begin; r < end; ++r) {
      picked_largest(logits_RV + r * shape.vocab, shape.vocab, count, heap);
      heap.resize(count, {picked_nothing, -1});
      for (std::size_t k = 0; k < count; ++k) {
        values_RK[static_cast<std::size_t>(r) * count + k] = heap[k].logit;
        ids_RK[static_cast<std::size_t>(r) * count + k]
          = heap[k].id < 0
              ? -1
              : heap[k].id + static_cast<std::int32_t>(shape.first_token);
      }
    }
  });
}

} // namespace troupe::models
