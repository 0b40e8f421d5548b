#include "models/text/jinja/key.hpp"

#include "models/text/jinja/value.hpp"

namespace troupe::models::jinja {

std::optional<Key> Key::of(const Value& value) {
  if (const auto* text = value.text())
    return Key(*text);
  if (value.none())
    return Key(Data(None{}));
  if (const bool* flag = value.as<bool>())
    return Key(Data(*flag));
  if (const auto* whole = value.as<std::int64_t>())
    return Key(Data(*whole));
  if (const double* real = value.as<double>())
    return Key(Data(*real));
  return std::nullopt;
}

Key Key::need(const Value& value) {
  auto key = of(value);
  if (!key && value.is_tuple())
    throw TemplateError("unsupported construct: a tuple as a mapping's key");
  if (!key)
    throw TemplateError(std::string(value.kind())
                        + " cannot be a mapping's key");
  return *std::move(key);
}

Value Key::value() const {
  return std::visit([](const auto& data) { return Value(data); }, data_);
}

std::size_t Key::size_bytes() const {
  return text() != nullptr ? text()->size() : sizeof(double);
}

bool Key::operator==(const Key& other) const {
  if (text() != nullptr || other.text() != nullptr)
    return text() != nullptr && other == std::string_view(*text());
  return equal(value(), other.value());
}

} // namespace troupe::models::jinja
