// Statistics of logit rows for losses, with the contract of
// models/kernels/logits.hpp: each tp rank computes four numbers per row from
// its part of the vocabulary, and every rank joins those of all. Logits are
// read once for the largest and once for the sums, and never leave the GPU.
//
// R rows, V vocabulary (of this rank), P ranks.
#pragma once

#include "models/gpu/kernels/grid.hpp"
#include "models/gpu/kernels/storage.hpp"
#include "models/kernels/host_math.hpp"
#include "models/kernels/logits.hpp"

#include <cmath>
#include <cstdint>

namespace troupe::models::gpu {

/// Computes the parts of this rank. One block per row.
template <class T>
struct LogitParts {
  static constexpr int threads = 512;
  struct Shared {
    float part[threads];
    float weighted[threads];
  };

  const T* logits_RV = nullptr;
  const std::int64_t* targets_R = nullptr; ///< as in LogitRows
  RowPart* parts_R = nullptr;
  std::int64_t vocab = 0; ///< V
  float inverse_temperature = 1;

  static std::int64_t blocks(std::int64_t rows) {
    return rows;
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared& shared) const {
    const T* logits = logits_RV + block.index * vocab;
    block.each([&](int lane) {
      float largest = -INFINITY;
      for (std::int64_t j = lane; j < vocab; j += threads)
        largest = fmaxf(largest, to_float(logits[j]));
      shared.part[lane] = largest;
    });
    reduce(block, shared.part, [](float a, float b) { return fmaxf(a, b); });
    const float top = block.uniform(shared.part[0]);
    block.each([&](int lane) {
      float total = 0;
      float weighted = 0;
      for (std::int64_t j = lane; j < vocab; j += threads) {
        const float x = (to_float(logits[j]) - top) * inverse_temperature;
        const float e = fast_exp(x);
        total += e;
        weighted += e * x;
      }
      shared.part[lane] = total;
      shared.weighted[lane] = weighted;
    });
    sum(block, shared.part);
    sum(block, shared.weighted);
    block.each([&](int lane) {
      if (lane != 0)
        return;
      const std::int64_t target = targets_R[block.index];
      const bool here = target >= 0 && target < vocab;
      parts_R[block.index] = {top, shared.part[0], shared.weighted[0],
                              here ? to_float(logits[target]) : -INFINITY};
    });
  }
};

/// Joins the parts of all ranks, added up in rank order. One lane per row.
struct JoinLogitParts {
  static constexpr int threads = 256;
  struct Shared {};

  const RowPart* parts_PR = nullptr;
  std::int64_t peers = 0; ///< P
  std::int64_t rows = 0;  ///< R
  float inverse_temperature = 1;
  RowStatistics found;

  static std::int64_t blocks(std::int64_t rows) {
    return pieces_of(rows, threads);
  }

  TROUPE_KERNEL void operator()(Block<threads> block, Shared&) const {
    block.each([&](int lane) {
      const std::int64_t row = block.index * threads + lane;
      if (row < rows)
        join(row);
    });
  }

  TROUPE_KERNEL void join(std::int64_t row) const {
    float top = -INFINITY;
    float target = -INFINITY;
    for (std::int64_t p = 0; p < peers; ++p) {
      top = fmaxf(top, parts_PR[p * rows + row].top);
      target = fmaxf(target, parts_PR[p * rows + row].target);
    }
    float total = 0;
    float weighted = 0;
    for (std::int64_t p = 0; p < peers; ++p) {
      const RowPart& part = parts_PR[p * rows + row];
      const float below = (part.top - top) * inverse_temperature;
      const float scale = fast_exp(below);
      total += scale * part.sum;
      weighted += scale * (part.weighted + below * part.sum);
    }
    const float log_total = fast_log(total);
    found.logprobs_R[row] = (target - top) * inverse_temperature - log_total;
    found.entropy_R[row] = log_total - weighted / total;
    found.lse_R[row] = top * inverse_temperature + log_total;
  }
};

} // namespace troupe::models::gpu
