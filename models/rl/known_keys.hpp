// Keys that the code of a call requires, for workflows in files: a call that
// reads too little is detected before a run.
#pragma once

#include <string>

namespace troupe {
struct Settings;
} // namespace troupe

namespace troupe::models {

/// A key by the name that the code uses.
struct KnownKey {
  std::string name;
  bool (*used)(const Settings&) = nullptr; ///< nullptr: always

  bool is_used(const Settings& settings) const {
    return used == nullptr || used(settings);
  }
};

/// A number that the code passes from step to step.
struct KnownCarried {
  KnownKey key;
  std::string initial = "0"; ///< as in a file: a number or a setting
};

} // namespace troupe::models
