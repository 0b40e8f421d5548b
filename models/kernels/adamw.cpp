#include "models/kernels/adamw.hpp"

#include "config/base/error.hpp"
#include "models/kernels/host_simd.hpp"
#include "models/kernels/threads.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace troupe::models {

namespace {

constexpr std::int64_t adamw_sum_floats = 1 << 10; // per fp32 partial sum

struct AdamMemory {
  float* p;
  const float* g;
  float* m;
  float* v;
};

void adam_update(const AdamNumbers& n, const AdamMemory& at,
                 std::int64_t count) {
  on_best_isa([&] {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const float g = at.g[i] * n.scale;
      const float m = at.m[i] + (1.0F - n.beta1) * (g - at.m[i]);
      const float v = at.v[i] * n.beta2 + (1.0F - n.beta2) * g * g;
      at.m[i] = m;
      at.v[i] = v;
      at.p[i]
        = at.p[i] * n.keep - n.step * m / (__builtin_sqrtf(v) * n.root + n.eps);
    }
  });
}

float adam_short_sum(const float* g, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i)
    sum += g[i] * g[i];
  return sum;
}

// Short sums in float, which vectorise, are added up in double.
double adam_sum_of_squares(const float* g, std::int64_t begin,
                           std::int64_t end) {
  double sum = 0;
  on_best_isa([&] {
    for (std::int64_t at = begin; at < end; at += adamw_sum_floats)
      sum += static_cast<double>(
        adam_short_sum(g + at, std::min(adamw_sum_floats, end - at)));
  });
  return sum;
}

} // namespace

double sum_of_squares(const float* grad, std::span<const OptimizerRun> runs) {
  std::vector<double> sums(runs.size());
  parallel_for(0, static_cast<std::int64_t>(runs.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = static_cast<std::size_t>(begin);
                      i < static_cast<std::size_t>(end); ++i)
                   if (runs[i].counted)
                     sums[i]
                       = adam_sum_of_squares(grad, runs[i].begin, runs[i].end);
               });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void adamw(const AdamNumbers& numbers, const AdamPlanes& planes,
           std::span<const OptimizerRun> runs) {
  TROUPE_CHECK(planes.rounded == nullptr, "the CPU's weights are fp32");
  parallel_for(0, static_cast<std::int64_t>(runs.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 AdamNumbers mine = numbers;
                 for (auto i = static_cast<std::size_t>(begin);
                      i < static_cast<std::size_t>(end); ++i) {
                   const OptimizerRun& run = runs[i];
                   mine.keep = run.decay ? numbers.keep : 1.0F;
                   adam_update(mine,
                               {planes.weight + run.begin,
                                planes.grad + run.begin, planes.m + run.moment,
                                planes.v + run.moment},
                               run.end - run.begin);
                 }
               });
}

} // namespace troupe::models
