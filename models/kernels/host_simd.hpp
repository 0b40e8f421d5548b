// Runs a loop compiled for the best vector instructions of this machine: one
// body, three compilations, chosen once at run time (no ifunc, because TSan and
// ASan builds cannot start with it).
#pragma once

#include <cstdint>

namespace troupe::models {

enum class Isa : std::uint8_t { plain, avx2, avx512 };

/// Returns the widest instruction set that this processor has.
Isa host_isa() noexcept;

namespace simd {

template <class Body>
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"), flatten,
               noinline)) void
on_avx512(const Body& body) {
  body();
}

template <class Body>
__attribute__((target("avx2,fma"), flatten, noinline)) void
on_avx2(const Body& body) {
  body();
}

} // namespace simd

/// Runs `body()` (loops marked `#pragma omp simd`, everything inlinable).
template <class Body>
void on_best_isa(const Body& body) {
  switch (host_isa()) {
  case Isa::avx512:
    return simd::on_avx512(body);
  case Isa::avx2:
    return simd::on_avx2(body);
  case Isa::plain:
    return body();
  }
}

} // namespace troupe::models
