// Several mistakes of a user told at once, so that a file is mended in one go.
// Whoever knows ConfigError alone sees the first of them.
#pragma once

#include "config/error.hpp"

#include <vector>

namespace troupe {

/// Two or more mistakes; what() is the first one's line.
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
  /// Calls `work`; a ConfigError that it throws is added.
  template <class Work>
  void collect(Work&& work) {
    try {
      work();
    } catch (const ConfigError& mistake) {
      add(mistake);
    }
  }
  /// Throws what was collected: one as it is, several as ConfigErrors.
  void throw_any() const;

private:
  std::vector<ConfigError> all_;
};

} // namespace troupe
