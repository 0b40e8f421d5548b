#include "config/model/missing_folder.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace troupe {

bool is_hub_name(const std::string& path) {
  const auto slash = path.find('/');
  const bool two_words = slash != path.npos && slash > 0
                         && slash + 1 < path.size()
                         && path.find('/', slash + 1) == path.npos;
  const bool is_word = std::ranges::all_of(path, [](unsigned char c) {
    return std::isalnum(c) != 0
           || std::string_view("/._-").find(static_cast<char>(c))
                != std::string_view::npos;
  });
  std::error_code ignored;
  // "runs/nope" is a typo if runs is a local folder
  return two_words && is_word && path.front() != '.'
         && !std::filesystem::exists(path.substr(0, slash), ignored);
}

std::string missing_folder_hint(const std::filesystem::path& folder) {
  const auto name = folder.string();
  if (!is_hub_name(name))
    return "a folder that exists (does a run before this one make it?)";
  return "`hf download " + name + " --local-dir " + name + "`, then this again";
}

} // namespace troupe
