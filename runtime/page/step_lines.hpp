// The lines of one step in a file with a line per record and ascending steps,
// as samples.jsonl: a viewer gets the newest lines of a long run, and those of
// an older step when it asks for them. The step is found by halving the file,
// so a file of gigabytes costs some twenty reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// Returns the step of a line that begins with {"step": NUMBER; nothing: it
/// begins otherwise.
std::optional<std::uint32_t> step_of_line(std::string_view line);

/// Returns the first lines of `step`, of about `max_bytes` at most; empty: the
/// file has none, or does not exist.
std::string lines_of_step(const std::filesystem::path& file, std::uint32_t step,
                          std::size_t max_bytes);

} // namespace troupe::runtime
