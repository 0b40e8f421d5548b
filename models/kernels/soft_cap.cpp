#include "models/kernels/soft_cap.hpp"

#include "models/kernels/host_simd.hpp"
#include "models/kernels/threads.hpp"

namespace troupe::models {

namespace {
constexpr std::int64_t soft_cap_grain = 1 << 13; // floats worth a thread
} // namespace

void cap_logits(float* x, std::int64_t count, float cap) {
  const float inverse = 1.0F / cap;
  parallel_for(0, count, soft_cap_grain,
               [&](std::int64_t begin, std::int64_t end) {
                 on_best_isa([&] {
#pragma omp simd
                   for (std::int64_t i = begin; i < end; ++i)
                     x[i] = cap * soft_tanh(x[i] * inverse);
                 });
               });
}

} // namespace troupe::models
