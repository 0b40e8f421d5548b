#include "models/stream_copy.hpp"

#include "models/host_simd.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace troupe::models {

namespace {

/// A longer run is read ahead of itself by `ahead`, a shorter one by a stride.
constexpr std::size_t long_run = 4096, ahead = 1024;

/// One run; `to_next` bytes behind each line is one that will be read soon.
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
    // a hint: it may name what is not there
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

void stream_copy(std::byte* target, const std::byte* source,
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
