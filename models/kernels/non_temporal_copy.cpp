#include "models/kernels/non_temporal_copy.hpp"

#include "models/kernels/host_simd.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace troupe::models {

namespace {

/// Long runs prefetch `ahead` bytes within themselves; shorter ones prefetch
/// the next run, a stride away.
constexpr std::size_t long_run = 4096, ahead = 1024;

/// Copies one run; `to_next` is the distance from each line to one that will be
/// read soon.
using CopyRun = void (*)(std::byte* target, const std::byte* source,
                         std::size_t size_bytes, std::size_t to_next);

void plain_run(std::byte* target, const std::byte* source,
               std::size_t size_bytes, std::size_t) noexcept {
  std::memcpy(target, source, size_bytes);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) void avx2_run(std::byte* target,
                                              const std::byte* source,
                                              std::size_t size_bytes,
                                              std::size_t to_next) noexcept {
  constexpr std::size_t line = 64;
  const auto past = reinterpret_cast<std::uintptr_t>(target) % line;
  const auto head = std::min((line - past) % line, size_bytes);
  std::memcpy(target, source, head);
  auto at = head;
  for (; at + line <= size_bytes; at += line) {
    // only a hint: the address may be invalid
    const auto soon = reinterpret_cast<std::uintptr_t>(source + at) + to_next;
    _mm_prefetch(reinterpret_cast<const char*>(soon), _MM_HINT_T0);
    const auto* from = reinterpret_cast<const __m256i*>(source + at);
    auto* to = reinterpret_cast<__m256i*>(target + at);
    const __m256i low = _mm256_loadu_si256(from);
    const __m256i high = _mm256_loadu_si256(from + 1);
    _mm256_stream_si256(to, low);
    _mm256_stream_si256(to + 1, high);
  }
  std::memcpy(target + at, source + at, size_bytes - at);
}
#endif

CopyRun best_run() noexcept {
#ifdef __x86_64__
  if (host_isa() != Isa::plain)
    return &avx2_run;
#endif
  return &plain_run;
}

} // namespace

void non_temporal_copy(std::byte* target, const std::byte* source,
                       const ByteRuns& runs) noexcept {
  const auto run = best_run();
  const bool alone = runs.runs == 1 || runs.bytes > long_run;
  const auto to_next = alone ? ahead : runs.source_stride;
  target += runs.target_offset;
  source += runs.source_offset;
  for (std::size_t i = 0; i < runs.runs; ++i)
    run(target + i * runs.target_stride, source + i * runs.source_stride,
        runs.bytes, to_next);
}

void end_stream_copies() noexcept {
#ifdef __x86_64__
  _mm_sfence();
#endif
}

} // namespace troupe::models
