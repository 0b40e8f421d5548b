#include "config/settings/setting_checks.hpp"

#include "config/base/error.hpp"

namespace troupe {

SettingChecks::SettingChecks(const Settings& settings, const Place& whole,
                             std::string ruling)
  : settings_(settings),
    whole_(whole),
    ruling_(std::move(ruling)) {}

void SettingChecks::fail(const std::string& path, const std::string& expected,
                         const std::string& got,
                         const std::string& hint) const {
  auto place = place_of(settings_, path);
  if (place.file.empty() && !ruling_.empty())
    place = place_of(settings_, ruling_);
  throw ConfigError({.place = place.file.empty() ? whole_ : place,
                     .path = path,
                     .expected = expected,
                     .got = got,
                     .hint = hint});
}

} // namespace troupe
