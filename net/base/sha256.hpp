// SHA-256 as other programs write it: the sum of a tensor that a server of
// another program takes from our memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace troupe::net {

/// Returns the digest in lower-case hexadecimal.
std::string sha256_hex(std::span<const std::byte> bytes);

} // namespace troupe::net
