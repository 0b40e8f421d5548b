// The end of a process that reads a mapped file which became shorter: the
// kernel sends SIGBUS to whoever reads a page that is gone. Nothing can go on
// then, but the process can say which file it was.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe::models {

/// Lets SIGBUS inside `bytes` end the process with a line that names `file`,
/// and the exit code of wrong input.
void name_mapping(std::span<const std::byte> bytes, std::string_view file);
void forget_mapping(std::span<const std::byte> bytes) noexcept;

} // namespace troupe::models
