// Keys of the template language's mappings: texts, and what else Python takes
// for a key and templates use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace troupe::models::jinja {

class Value;

struct None {};

/// A mapping's key: a text, or none or a number, which are compared by value
/// (1, 1.0 and True are one key).
class Key {
public:
  Key(std::string text) : data_(std::move(text)) {}
  Key(const char* text) : data_(std::string(text)) {}
  /// TemplateError for a value that cannot be a key.
  static Key need(const Value& value);
  /// nullopt for a value that cannot be a key.
  static std::optional<Key> of(const Value& value);

  const std::string* text() const {
    return std::get_if<std::string>(&data_);
  }
  Value value() const;
  std::size_t size_bytes() const;
  bool operator==(const Key& other) const;
  bool operator==(std::string_view other) const {
    return text() != nullptr && *text() == other;
  }

private:
  using Data = std::variant<std::string, None, bool, std::int64_t, double>;
  explicit Key(Data data) : data_(std::move(data)) {}

  Data data_;
};

} // namespace troupe::models::jinja
