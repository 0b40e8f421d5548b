// Names of parameters in checkpoints that differ from ours in a few words.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe {

struct Rename {
  std::string_view ours;
  std::string_view theirs;
};

/// Returns the name with the words of the first rename that occurs in it
/// replaced; the name itself if none does.
std::string renamed(std::string name, std::span<const Rename> renames);

} // namespace troupe
