// What the code of a call cannot do without, for workflows in files: there a
// call that reads too little is found before a run.
#pragma once

#include <string>

namespace troupe {
struct Settings;
} // namespace troupe

namespace troupe::models {

/// A key by the name that the code knows it by.
struct KnownKey {
  std::string name;
  bool (*used)(const Settings&) = nullptr; ///< nullptr: always

  bool is_used(const Settings& settings) const {
    return used == nullptr || used(settings);
  }
};

/// A number that the code hands from step to step.
struct KnownCarried {
  KnownKey key;
  std::string initial = "0"; ///< as a file says it: a number or a setting
};

} // namespace troupe::models
