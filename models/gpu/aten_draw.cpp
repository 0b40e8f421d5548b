// Draws of aten_backend.hpp, by a kernel of our own.
#include "models/gpu/aten_backend.hpp"
#include "models/gpu/kernels/draw_token.hpp"
#include "models/gpu/own_kernels.hpp"

#include <cmath>

namespace troupe::models {

namespace {

gpu::DrawOptions draw_options(const DrawRows& what) {
  const DrawFilters& filters = what.filters;
  gpu::DrawOptions options{.temperature
                           = static_cast<float>(filters.temperature),
                           .greedy = filters.greedy,
                           .top_p = filters.top_p,
                           .filtered_logprobs = filters.filtered_logprobs};
  if (filters.top_k < what.vocab)
    options.top_k = static_cast<std::uint32_t>(filters.top_k);
  if (filters.min_p > 0)
    options.log_min_p = std::log(filters.min_p);
  return options;
}

/// Returns the bytes of a draw. Logits are read for the largest one and for the
/// draw, and once per digit of the rank that a filter cuts at.
std::int64_t draw_bytes(const DrawRows& what, const gpu::DrawOptions& options) {
  constexpr std::int64_t digits = 3;
  std::int64_t passes = 2;
  if (options.top_k > 0)
    passes += digits;
  if (options.top_p < 1)
    passes += 1 + digits;
  return what.rows
         * (passes * what.vocab * static_cast<std::int64_t>(sizeof(float))
            + static_cast<std::int64_t>(sizeof(DrawKey) + sizeof(DrawnToken)));
}

} // namespace

bool AtenBackend::draws() const {
  return options_.own_kernels;
}

void AtenBackend::draw(const DrawRows& what, const float* logits_RV,
                       const DrawKey* keys_R, DrawnToken* drawn_R) {
  TROUPE_CHECK(draws(), "the host draws without kernels of our own");
  using Kernel = gpu::DrawToken<float>;
  const gpu::DrawOptions options = draw_options(what);
  gpu::run_kernel(device_,
                  Kernel{logits_RV, keys_R, drawn_R,
                         static_cast<std::uint32_t>(what.vocab), options},
                  Kernel::blocks(what.rows),
                  {"draw_token", draw_bytes(what, options)});
}

} // namespace troupe::models
