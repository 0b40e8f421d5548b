// The object of a config.json, read with errors that name file and key.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace troupe {

/// JSON with members in written order, in which config.json is printed.
using HfJson = nlohmann::ordered_json;

inline constexpr const char* hint_of_model_folder
  = "a folder in Hugging Face format";

/// Parses a file of a model folder, whose depth is limited: whoever made it
/// must not choose the depth of a recursion. Throws ConfigError.
HfJson parse_hf_object(const std::string& json, const std::string& file_name);

/// A view; the JSON must outlive it. Accessors throw ConfigError.
class HfObject {
public:
  /// Default limit of `size`.
  static constexpr std::int64_t size_limit = std::int64_t{1} << 24;

  HfObject(const HfJson& json, std::string file, std::string prefix = "");

  /// Returns the value of `key`, or nullptr if it is absent or JSON null.
  const HfJson* find(const std::string& key) const;
  bool has_null(const std::string& key) const; ///< present and JSON null
  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const std::string& hint = "") const;
  /// Returns a whole number from 1 to `most`; `fallback` if absent, provided
  /// that it is > 0.
  std::int64_t size(const std::string& key, std::int64_t fallback,
                    std::int64_t most = size_limit) const;
  /// Returns a number > 0; `fallback` if absent, provided that it is > 0.
  double positive(const std::string& key, double fallback) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  HfObject object(const std::string& key) const; ///< required
  std::int32_t token(const HfJson& value, const std::string& key) const;

private:
  const HfJson& json_; // NOLINT: lives in the caller's frame
  std::string file_;
  std::string prefix_;
};

} // namespace troupe
