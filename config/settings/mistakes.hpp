// Reports several mistakes of a user at once, so that a file can be fixed in
// one go. Code that handles only ConfigError sees the first of them.
#pragma once

#include "config/base/error.hpp"

#include <vector>

namespace troupe {

/// Two or more mistakes; what() is the line of the first.
class ConfigErrors : public ConfigError {
public:
  explicit ConfigErrors(std::vector<ConfigError> all);
  const std::vector<ConfigError>& all() const noexcept {
    return all_;
  }

private:
  std::vector<ConfigError> all_;
};

/// Collects mistakes, each line once.
class Mistakes {
public:
  void add(const ConfigError& mistake);
  /// Calls `work` and records a ConfigError that it throws.
  template <class Work>
  void collect(Work&& work) {
    try {
      work();
    } catch (const ConfigError& mistake) {
      add(mistake);
    }
  }
  /// Throws the collected mistakes: a single one as it is, several as
  /// ConfigErrors.
  void throw_any() const;

private:
  std::vector<ConfigError> all_;
};

} // namespace troupe
