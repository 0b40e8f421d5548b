// A value inside a user's JSON file that knows its path, so that every error
// reads "FILE: path.to[2].key: expected ..., got ...".
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace troupe::models::internal {

/// A view: the JSON document must outlive it. Every accessor throws ConfigError
/// with file and path if the value has another type than requested.
class JsonAt {
public:
  JsonAt(const nlohmann::json& value, std::string file, std::string path = "");

  bool has(const std::string& key) const; ///< present and not null
  bool is_null() const;
  bool is_text() const;
  bool is_list() const;
  bool is_object() const;
  JsonAt at(const std::string& key) const;
  JsonAt at(std::size_t index) const; ///< of a list
  std::size_t size() const;           ///< of a list
  std::string text() const;
  bool boolean() const;
  double number() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  std::string text_or(const std::string& key, const std::string& absent) const;
  bool boolean_or(const std::string& key, bool absent) const;
  void for_each(const std::function<void(const std::string&, JsonAt)>& visit)
    const; ///< entries of an object

  [[noreturn]] void expected(const std::string& what) const;
  /// Throws for a construct that Troupe knows but does not implement.
  [[noreturn]] void unsupported(const std::string& component) const;
  [[noreturn]] void wrong(const std::string& sentence) const;
  const nlohmann::json& value() const {
    return *value_;
  }
  const std::string& file() const {
    return file_;
  }
  const std::string& path() const {
    return path_;
  }

private:
  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

} // namespace troupe::models::internal
