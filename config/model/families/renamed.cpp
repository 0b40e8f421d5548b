#include "config/model/families/renamed.hpp"

namespace troupe {

std::string renamed(std::string name, std::span<const Rename> renames) {
  for (const auto& [ours, theirs] : renames)
    if (const auto at = name.find(ours); at != std::string::npos)
      return name.replace(at, ours.size(), theirs);
  return name;
}

} // namespace troupe
