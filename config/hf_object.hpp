// A config.json's object, read with errors that name file and key.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace troupe {

/// Members in written order: that is how config.json is printed.
using HfJson = nlohmann::ordered_json;

/// A view; the JSON must outlive it. Accessors throw ConfigError.
class HfObject {
public:
  /// Largest size that `size` accepts unless told otherwise.
  static constexpr std::int64_t size_limit = std::int64_t{1} << 24;

  HfObject(const HfJson& json, std::string file, std::string prefix = "");

  /// The value of `key`, or null where absent or JSON null.
  const HfJson* find(const std::string& key) const;
  bool has_null(const std::string& key) const; ///< there, and JSON null
  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const std::string& hint = "") const;
  /// A whole number from 1 to `most`; `fallback` where absent, if it is > 0.
  std::int64_t size(const std::string& key, std::int64_t fallback,
                    std::int64_t most = size_limit) const;
  /// A number > 0, likewise.
  double positive(const std::string& key, double fallback) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  HfObject object(const std::string& key) const; ///< which must be there
  std::int32_t token(const HfJson& value, const std::string& key) const;

private:
  const HfJson& json_; // NOLINT: lives in the caller's frame
  std::string file_;
  std::string prefix_;
};

} // namespace troupe
