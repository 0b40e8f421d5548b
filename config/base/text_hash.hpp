// A hash of text that is the same on every machine and in every build: FNV-1a
// (Fowler, Noll, Vo), 64 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

constexpr std::uint64_t text_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

} // namespace troupe
