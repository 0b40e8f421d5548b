// Operators of the template language (declared in value.hpp).
#include "models/text/jinja/steps.hpp"
#include "models/text/jinja/text.hpp"
#include "models/text/jinja/value.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models::jinja {

namespace {

[[noreturn]] void operation_refused(std::string_view op, const Value& a,
                                    const Value& b) {
  for (const Value* side : {&a, &b})
    if (const auto* missing = side->as<Undefined>())
      throw TemplateError("'" + missing->name + "' is undefined");
  throw TemplateError("'" + std::string(op) + "' between "
                      + std::string(a.kind()) + " and " + b.kind());
}

bool both_integers(const Value& a, const Value& b) {
  return a.is_number() && b.is_number() && a.as<double>() == nullptr
         && b.as<double>() == nullptr;
}

[[noreturn]] void operation_overflow() {
  throw TemplateError("a whole number is too large");
}

/// Implements Python's integer division: rounds down, the remainder has the
/// divisor's sign.
Value integer_division(std::string_view op, std::int64_t a, std::int64_t b) {
  if (b == 0)
    throw TemplateError("division by zero");
  if (op == "/")
    return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1) {
    if (a == INT64_MIN)
      operation_overflow();
    return op == "%" ? std::int64_t{0} : -a;
  }
  const std::int64_t rest = a % b;
  const bool round = rest != 0 && (rest < 0) != (b < 0);
  if (op == "%")
    return round ? rest + b : rest;
  return a / b - (round ? 1 : 0);
}

Value integer_power(std::int64_t a, std::int64_t b) {
  if (b < 0)
    return std::pow(static_cast<double>(a), static_cast<double>(b));
  if (a == -1 || a == 0 || a == 1) // the exponent may be huge
    return b == 0                  ? std::int64_t{1}
           : a == -1 && b % 2 == 0 ? std::int64_t{1}
                                   : a;
  std::int64_t out = 1;
  for (; b > 0; --b)
    if (__builtin_mul_overflow(out, a, &out))
      operation_overflow();
  return out;
}

Value integer_arithmetic(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool overflow = false;
  if (op == "+")
    overflow = __builtin_add_overflow(a, b, &out);
  else if (op == "-")
    overflow = __builtin_sub_overflow(a, b, &out);
  else if (op == "*")
    overflow = __builtin_mul_overflow(a, b, &out);
  else if (op == "**")
    return integer_power(a, b);
  else
    return integer_division(op, a, b);
  if (overflow)
    operation_overflow();
  return out;
}

Value real_arithmetic(std::string_view op, double a, double b) {
  if (op == "+")
    return a + b;
  if (op == "-")
    return a - b;
  if (op == "*")
    return a * b;
  if (op == "**")
    return std::pow(a, b);
  if (b == 0)
    throw TemplateError("division by zero");
  if (op == "/")
    return a / b;
  const double floor = std::floor(a / b);
  return op == "//" ? floor : a - floor * b;
}

Value repeated(const std::string& text, std::int64_t count) {
  std::string out;
  for (std::int64_t i = 0; i < count && !text.empty(); ++i)
    append(out, text);
  return out;
}

std::string joined(std::string text, std::string_view more) {
  append(text, more);
  return text;
}

std::int64_t slice_bound(const Value& bound, std::int64_t size,
                         std::int64_t absent, bool forward) {
  if (bound.undefined() || bound.none())
    return absent;
  std::int64_t at = bound.integer("a slice");
  if (at < 0)
    at += size;
  return forward ? std::clamp<std::int64_t>(at, 0, size)
                 : std::clamp<std::int64_t>(at, -1, size - 1);
}

std::vector<std::int64_t> slice_indices(std::int64_t size, const Value& start,
                                        const Value& stop, const Value& step) {
  const std::int64_t by
    = step.undefined() || step.none() ? 1 : step.integer("a slice");
  if (by == 0 || by == INT64_MIN)
    throw TemplateError("a slice needs a step other than 0");
  const bool forward = by > 0;
  std::int64_t at = slice_bound(start, size, forward ? 0 : size - 1, forward);
  const std::int64_t end
    = slice_bound(stop, size, forward ? size : -1, forward);
  std::vector<std::int64_t> out;
  const std::int64_t stride = std::clamp<std::int64_t>(by, -size - 1, size + 1);
  for (; forward ? at < end : at > end; at += stride)
    out.push_back(at);
  return out;
}

} // namespace

bool equal(const Value& a, const Value& b) {
  count_steps();
  if (a.is_number() && b.is_number())
    return both_integers(a, b) ? a.integer("") == b.integer("")
                               : a.real() == b.real();
  if (a.text() != nullptr && b.text() != nullptr) {
    count_bytes(std::min(a.text()->size(), b.text()->size()));
    return *a.text() == *b.text();
  }
  if (a.list() != nullptr && b.list() != nullptr)
    return std::equal(a.list()->begin(), a.list()->end(), b.list()->begin(),
                      b.list()->end(), equal);
  if (a.dict() != nullptr && b.dict() != nullptr) {
    if (a.dict()->size() != b.dict()->size())
      return false;
    return std::ranges::all_of(*a.dict(), [&](const auto& entry) {
      const Value* other = find(*b.dict(), entry.first);
      return other != nullptr && equal(entry.second, *other);
    });
  }
  return (a.none() && b.none()) || (a.undefined() && b.undefined());
}

bool less(const Value& a, const Value& b) {
  count_steps();
  if (both_integers(a, b))
    return a.integer("") < b.integer("");
  if (a.is_number() && b.is_number())
    return a.real() < b.real();
  if (a.text() != nullptr && b.text() != nullptr) {
    count_bytes(std::min(a.text()->size(), b.text()->size()));
    return *a.text() < *b.text(); // UTF-8 sorts like code points
  }
  if (a.list() != nullptr && b.list() != nullptr)
    return std::ranges::lexicographical_compare(*a.list(), *b.list(), less);
  operation_refused("<", a, b);
}

bool contains(const Value& a, const Value& b) {
  if (const auto* text = b.text())
    return find_text(*text, a.need_text("'in' of a text"))
           != std::string_view::npos;
  if (const Dict* dict = b.dict())
    return !a.undefined() && !a.is_tuple()
           && find(*dict, Key::need(a)) != nullptr;
  const List list = iterate(b);
  return std::ranges::any_of(
    list, [&](const Value& entry) { return equal(a, entry); });
}

bool holds(std::string_view op, const Value& a, const Value& b) {
  if (op == "==")
    return equal(a, b);
  if (op == "!=")
    return !equal(a, b);
  if (op == "in")
    return contains(a, b);
  if (op == "not in")
    return !contains(a, b);
  if (op == "<")
    return less(a, b);
  if (op == ">")
    return less(b, a);
  return op == "<=" ? !less(b, a) : !less(a, b);
}

Value arithmetic(std::string_view op, const Value& a, const Value& b) {
  if (op == "~")
    return joined(a.print(), b.print());
  if (both_integers(a, b))
    return integer_arithmetic(op, a.integer(op), b.integer(op));
  if (a.is_number() && b.is_number())
    return real_arithmetic(op, a.real(), b.real());
  if (op == "+" && a.text() != nullptr && b.text() != nullptr)
    return joined(*a.text(), *b.text());
  if (op == "+" && a.list() != nullptr && b.list() != nullptr) {
    List both = *a.list();
    both.insert(both.end(), b.list()->begin(), b.list()->end());
    return both;
  }
  if (op == "*" && a.text() != nullptr && b.is_number())
    return repeated(*a.text(), b.integer("'*'"));
  if (op == "*" && b.text() != nullptr && a.is_number())
    return repeated(*b.text(), a.integer("'*'"));
  operation_refused(op, a, b);
}

List iterate(const Value& value) {
  if (const List* list = value.list()) {
    std::ranges::for_each(*list, count_copy);
    return *list;
  }
  ListInMaking out;
  if (const Dict* dict = value.dict(); dict != nullptr && !value.is_namespace())
    for (const auto& [key, entry] : *dict)
      out.add(key.value());
  else if (const auto* text = value.text())
    for (const std::string_view c : characters(*text))
      out.add(std::string(c));
  else if (!value.undefined())
    throw TemplateError(std::string("cannot go through ") + value.kind());
  return std::move(out).take();
}

Value slice(const Value& object, const Value& start, const Value& stop,
            const Value& step) {
  if (const auto* text = object.text()) {
    const auto all = characters(*text);
    std::string out;
    for (const std::int64_t i : slice_indices(
           static_cast<std::int64_t>(all.size()), start, stop, step))
      out += all[static_cast<std::size_t>(i)];
    return out;
  }
  const List* list = object.list();
  if (list == nullptr) {
    if (const auto* missing = object.as<Undefined>())
      throw TemplateError("'" + missing->name + "' is undefined");
    throw TemplateError(std::string("cannot slice ") + object.kind());
  }
  List out;
  for (const std::int64_t i : slice_indices(
         static_cast<std::int64_t>(list->size()), start, stop, step))
    out.push_back((*list)[static_cast<std::size_t>(i)]);
  return out;
}

} // namespace troupe::models::jinja
