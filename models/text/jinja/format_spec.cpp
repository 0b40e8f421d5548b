#include "models/text/jinja/format_spec.hpp"

#include "models/io/utf8.hpp"
#include "models/text/jinja/text.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace troupe::models::jinja {

namespace {

constexpr int precision_limit = 1000;

class SpecReader {
public:
  explicit SpecReader(std::string_view text) : text_(text) {}

  FormatSpec run() {
    FormatSpec spec;
    alignment(spec);
    if (at("+- "))
      spec.sign = take();
    spec.alternate = skip('#');
    spec.zeros = skip('0');
    spec.width = number().value_or(0);
    if (at(",_"))
      spec.grouping = take();
    if (skip('.')) {
      spec.precision = number();
      if (!spec.precision || *spec.precision > precision_limit)
        fail();
    }
    if (!text_.empty())
      spec.type = take();
    if (!text_.empty())
      fail();
    return spec;
  }

private:
  [[noreturn]] static void fail() {
    throw TemplateError("format: an invalid format specifier");
  }
  bool at(std::string_view any) const {
    return !text_.empty() && any.find(text_.front()) != std::string_view::npos;
  }
  char take() {
    const char c = text_.front();
    text_.remove_prefix(1);
    return c;
  }
  bool skip(char c) {
    if (text_.empty() || text_.front() != c)
      return false;
    take();
    return true;
  }
  std::optional<int> number() {
    int found = 0;
    const auto read
      = std::from_chars(text_.data(), text_.data() + text_.size(), found);
    if (read.ec == std::errc::result_out_of_range)
      fail();
    if (read.ec != std::errc() || at("-"))
      return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(read.ptr - text_.data()));
    return found;
  }
  void alignment(FormatSpec& spec) {
    constexpr std::string_view aligns = "<>^=";
    if (text_.empty())
      return;
    const std::size_t first = internal::code_point_at(text_, 0).size;
    if (first < text_.size()
        && aligns.find(text_[first]) != std::string_view::npos) {
      spec.fill = text_.substr(0, first);
      text_.remove_prefix(first);
    }
    if (at(aligns))
      spec.align = take();
  }

  std::string_view text_;
};

/// A number in parts: what is padded stands between sign and digits.
struct NumberText {
  std::string sign; ///< with 0x and the like
  std::string digits;
};

[[noreturn]] void refuse_type(const FormatSpec& spec, const Value& value) {
  throw TemplateError(std::string("format: the code '") + spec.type
                      + "' is not for " + value.kind());
}

void repeat(std::string& out, const std::string& fill, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    append(out, fill);
}

std::string padded(const NumberText& number, const FormatSpec& spec,
                   char default_align) {
  const auto size
    = static_cast<std::size_t>(length(number.sign) + length(number.digits));
  const std::size_t missing = spec.width > size ? spec.width - size : 0;
  const bool zeros = spec.zeros && spec.fill.empty();
  const std::string fill = zeros ? "0" : spec.fill.empty() ? " " : spec.fill;
  const char align = spec.align != 0                 ? spec.align
                     : zeros && default_align == '>' ? '='
                                                     : default_align;
  const std::size_t before = align == '>'   ? missing
                             : align == '^' ? missing / 2
                                            : 0;
  std::string out;
  repeat(out, fill, before);
  append(out, number.sign);
  repeat(out, fill, align == '=' ? missing : 0);
  append(out, number.digits);
  repeat(out, fill, align == '<' || align == '^' ? missing - before : 0);
  return out;
}

/// Digits before a point or exponent in groups from the right.
std::string grouped(const std::string& digits, char by, std::size_t size) {
  const std::size_t whole
    = std::min(digits.find_first_of(".eE%"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % size == 0)
      out += by;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string sign_of(bool negative, const FormatSpec& spec) {
  if (negative)
    return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string in_base(std::uint64_t number, int base, bool upper_case) {
  std::array<char, 65> buffer{};
  const auto end
    = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, base)
        .ptr;
  const std::string text(buffer.data(), end);
  return upper_case ? upper(text) : text;
}

NumberText whole_number(std::int64_t number, const FormatSpec& spec,
                        const Value& value) {
  if (spec.precision)
    throw TemplateError("format: a whole number has no precision");
  NumberText out{sign_of(number < 0, spec), ""};
  const auto size = number < 0 ? 0 - static_cast<std::uint64_t>(number)
                               : static_cast<std::uint64_t>(number);
  const char type = spec.type == 0 ? 'd' : spec.type;
  const int base = type == 'd'                  ? 10
                   : type == 'b'                ? 2
                   : type == 'o'                ? 8
                   : type == 'x' || type == 'X' ? 16
                                                : 0;
  if (type == 'c' && number >= 0 && number <= 0x10FFFF) {
    internal::append_utf8(out.digits, static_cast<char32_t>(number));
    return out;
  }
  if (base == 0 || (spec.grouping == ',' && base != 10))
    refuse_type(spec, value);
  if (spec.alternate && base != 10)
    out.sign += std::string("0") + type;
  out.digits = in_base(size, base, type == 'X');
  if (spec.grouping != 0)
    out.digits = grouped(out.digits, spec.grouping, base == 10 ? 3 : 4);
  return out;
}

std::string printed(const char* form, int precision, double number) {
  const int size = std::snprintf(nullptr, 0, form, precision, number);
  std::string out(static_cast<std::size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), form, precision, number);
  out.pop_back();
  return out;
}

/// Formats a number that has a precision but no code: %g, but with at least one
/// digit after the point.
std::string general_with_point(double number, int precision) {
  precision = std::max(precision, 1);
  const std::string scientific = printed("%.*e", precision - 1, number);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent >= -4 && exponent < precision - 1) {
    const std::string text = printed("%.*g", precision, number);
    return text.find('.') == std::string::npos ? text + ".0" : text;
  }
  std::string digits = scientific.substr(0, scientific.find('e'));
  if (digits.find('.') != std::string::npos)
    digits = strip(strip(digits, "0", Side::right), ".", Side::right);
  return digits + scientific.substr(scientific.find('e'));
}

std::string real_digits(double number, const FormatSpec& spec,
                        const Value& value) {
  const int precision = spec.precision.value_or(6);
  switch (spec.type) {
  case 0:
    return spec.precision && std::isfinite(number)
             ? general_with_point(number, *spec.precision)
             : Value(number).print();
  case 'e':
  case 'E':
    return printed("%.*e", precision, number);
  case 'f':
  case 'F':
    return printed("%.*f", precision, number);
  case 'g':
  case 'G':
    return printed("%.*g", precision, number);
  case '%':
    return printed("%.*f", precision, number * 100) + "%";
  default:
    refuse_type(spec, value);
  }
}

NumberText real_number(double number, const FormatSpec& spec,
                       const Value& value) {
  if (spec.alternate)
    throw TemplateError("unsupported construct: '#' in the format of a real "
                        "number");
  NumberText out{sign_of(std::signbit(number) && !std::isnan(number), spec),
                 ""};
  out.digits = real_digits(std::abs(number), spec, value);
  if (spec.type == 'E' || spec.type == 'F' || spec.type == 'G')
    out.digits = upper(out.digits);
  if (spec.grouping != 0)
    out.digits = grouped(out.digits, spec.grouping, 3);
  return out;
}

std::string formatted_text(const std::string& text, const FormatSpec& spec,
                           const Value& value) {
  if (spec.type != 0 && spec.type != 's')
    refuse_type(spec, value);
  if (spec.sign != '-' || spec.alternate || spec.grouping != 0
      || spec.align == '=')
    throw TemplateError("format: signs, '=', '#' and ',' are for numbers");
  std::string cut;
  for (const std::string_view c : characters(text)) {
    if (spec.precision && length(cut) >= *spec.precision)
      break;
    cut += c;
  }
  return padded({"", cut}, spec, '<');
}

} // namespace

FormatSpec parse_format_spec(std::string_view text) {
  return SpecReader(text).run();
}

std::string formatted(const Value& value, const FormatSpec& spec) {
  if (const auto* text = value.text())
    return formatted_text(*text, spec, value);
  if (!value.is_number())
    throw TemplateError(std::string("format: no format specifier is for ")
                        + value.kind());
  if (spec.grouping != 0 && spec.zeros)
    throw TemplateError(
      "unsupported construct: zeros and groups in one format");
  constexpr std::string_view of_reals = "eEfFgG%";
  const bool real
    = value.as<double>() != nullptr
      || (spec.type != 0 && of_reals.find(spec.type) != std::string_view::npos);
  return padded(real ? real_number(value.real(), spec, value)
                     : whole_number(value.integer("format"), spec, value),
                spec, '>');
}

} // namespace troupe::models::jinja
