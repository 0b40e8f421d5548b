#include "config/settings/mistakes.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

ConfigErrors::ConfigErrors(std::vector<ConfigError> all)
  : ConfigError(all.front()),
    all_(std::move(all)) {}

void Mistakes::add(const ConfigError& mistake) {
  const auto is_same = [&](const ConfigError& other) {
    return std::string_view(other.what()) == mistake.what();
  };
  if (std::ranges::none_of(all_, is_same))
    all_.push_back(mistake);
}

void Mistakes::throw_any() const {
  if (all_.empty())
    return;
  if (all_.size() == 1)
    throw all_.front();
  throw ConfigErrors(all_);
}

} // namespace troupe
