// The base of checks of settings that depend on each other: where such a
// mistake is reported.
#pragma once

#include "config/settings/settings.hpp"

#include <string>

namespace troupe {

class SettingChecks {
protected:
  /// Keeps references. `ruling` is the setting that rules others out ("":
  /// none); `whole` is the place of the settings as a whole.
  SettingChecks(const Settings& settings, const Place& whole,
                std::string ruling = "");

  /// Throws ConfigError about `path` at the first of these places that is in a
  /// file: of `path`, of the ruling setting, of the whole.
  [[noreturn]] void fail(const std::string& path, const std::string& expected,
                         const std::string& got, const std::string& hint) const;

  const Settings& settings_;

private:
  const Place& whole_;
  const std::string ruling_;
};

} // namespace troupe
