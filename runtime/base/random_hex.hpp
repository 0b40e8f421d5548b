// Secrets and names that cannot be guessed: the run's token, the page's token.
#pragma once

#include <cstddef>
#include <string>

namespace troupe::runtime {

/// Returns `bytes` bytes of the kernel's randomness as hexadecimal text.
std::string random_hex(std::size_t bytes);

} // namespace troupe::runtime
