// A copy whose stores go past the caches, for moves of more bytes than caches
// hold: an ordinary store reads the line that it is about to overwrite, so the
// memory moves three bytes for one. What was copied is in no cache afterwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace troupe::models {

/// The ranges do not overlap. Other threads see all of it after
/// `end_stream_copies()`.
inline void stream_copy(std::byte* target, const std::byte* source,
                        std::size_t size_bytes) noexcept {
#ifdef __SSE2__
  constexpr std::size_t line = 64;
  const auto past = reinterpret_cast<std::uintptr_t>(target) % line;
  const auto head = std::min((line - past) % line, size_bytes);
  std::memcpy(target, source, head);
  auto at = head;
  for (; at + line <= size_bytes; at += line) {
    __m128i words[line / sizeof(__m128i)];
    std::memcpy(words, source + at, line);
    for (std::size_t i = 0; i < std::size(words); ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + at) + i, words[i]);
  }
  std::memcpy(target + at, source + at, size_bytes - at);
#else
  std::memcpy(target, source, size_bytes);
#endif
}

inline void end_stream_copies() noexcept {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

} // namespace troupe::models
