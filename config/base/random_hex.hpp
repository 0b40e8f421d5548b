// Secrets and names that cannot be guessed: the token of a run, of its page, of
// an update of a server.
#pragma once

#include <cstddef>
#include <string>

namespace troupe {

/// Returns `bytes` bytes of the kernel's randomness as hexadecimal text.
std::string random_hex(std::size_t bytes);

} // namespace troupe
