// SHA-256 as other programs write it: the sum of a file that was fetched, which
// its address may name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace troupe::net {

/// Returns the digest in lower-case hexadecimal.
std::string sha256_hex(std::span<const std::byte> bytes);
/// Returns that of a file's bytes. Throws FailureError (io) if it cannot be
/// read.
std::string sha256_of_file(const std::filesystem::path& file);

} // namespace troupe::net
