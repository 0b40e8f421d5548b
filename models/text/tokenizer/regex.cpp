#include "models/text/tokenizer/regex.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#undef PCRE2_CODE_UNIT_WIDTH

namespace troupe::models::tokenizer {

namespace {

constexpr const char* word_class
  = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";        // Oniguruma's \w
constexpr std::uint32_t match_limit = 10'000'000; // steps, without JIT
constexpr std::size_t jit_stack_bytes = 1 << 20;

/// Scans the pattern once, replacing escapes with another meaning.
class PatternScanner {
public:
  explicit PatternScanner(const std::string& pattern) : in_(pattern) {}

  std::string run() {
    for (at_ = 0; at_ < in_.size(); ++at_)
      step();
    return std::move(out_);
  }

private:
  void step() {
    const char c = in_[at_];
    if (c == '\\' && at_ + 1 < in_.size())
      return escape(in_[++at_]);
    if (class_start_ != npos)
      return inside_class(c);
    if (c == '[')
      class_start_ = at_;
    out_ += c;
  }

  void inside_class(char c) {
    const bool first = at_ == class_start_ + 1
                       || (at_ == class_start_ + 2 && in_[at_ - 1] == '^');
    const char next = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
    if (c == '&' && next == '&')
      throw std::invalid_argument("the class intersection '&&'");
    if (c == '[' && next != ':')
      throw std::invalid_argument("a class inside a class");
    if (c == '[') // [:alpha:]
      posix_ = true;
    else if (c == ']' && posix_)
      posix_ = false;
    else if (c == ']' && !first)
      class_start_ = npos;
    out_ += c;
  }

  void escape(char c) {
    const bool in_class = class_start_ != npos;
    if (c == 's' || c == 'S') {
      out_ += c == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
    } else if (c == 'w') {
      out_ += in_class ? word_class : fmt::format("[{}]", word_class);
    } else if (c == 'W' && !in_class) {
      out_ += fmt::format("[^{}]", word_class);
    } else if (c == 'W' || c == 'h' || c == 'H' || c == 'y' || c == 'Y') {
      throw std::invalid_argument(std::string("the escape '\\") + c + "'"
                                  + (in_class ? " inside a class" : ""));
    } else {
      out_ += '\\';
      out_ += c;
    }
  }

  static constexpr std::size_t npos = std::string::npos;
  const std::string& in_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t class_start_ = npos; ///< start of the open class
  bool posix_ = false;             ///< inside [:...:]
};

struct MatchScratch {
  explicit MatchScratch(const pcre2_code_8* code)
    : data(pcre2_match_data_create_from_pattern_8(code, nullptr)),
      context(pcre2_match_context_create_8(nullptr)),
      stack(pcre2_jit_stack_create_8(32 * 1024, jit_stack_bytes, nullptr)) {
    pcre2_set_match_limit_8(context, match_limit);
    pcre2_jit_stack_assign_8(context, nullptr, stack);
  }
  MatchScratch(const MatchScratch&) = delete;
  MatchScratch& operator=(const MatchScratch&) = delete;
  ~MatchScratch() {
    pcre2_match_data_free_8(data);
    pcre2_match_context_free_8(context);
    pcre2_jit_stack_free_8(stack);
  }

  pcre2_match_data_8* data;
  pcre2_match_context_8* context;
  pcre2_jit_stack_8* stack;
};

std::string pcre_message(int code) {
  std::array<unsigned char, 200> text{};
  pcre2_get_error_message_8(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

/// Returns the bytes of the character that begins at `text[at]`.
std::size_t char_bytes(std::string_view text, std::size_t at) {
  std::size_t next = at + 1;
  while (next < text.size()
         && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80)
    ++next;
  return next - at;
}

std::optional<Range> first_match(const pcre2_code_8* code,
                                 const MatchScratch& scratch,
                                 std::string_view text, std::size_t from) {
  const int rc = pcre2_match_8(
    code, reinterpret_cast<const unsigned char*>(text.data()), text.size(),
    from, PCRE2_NO_UTF_CHECK, scratch.data, scratch.context);
  if (rc == PCRE2_ERROR_NOMATCH)
    return std::nullopt;
  if (rc < 0)
    throw std::runtime_error(pcre_message(rc));
  const std::size_t* ends = pcre2_get_ovector_pointer_8(scratch.data);
  return Range{ends[0], ends[1]};
}

} // namespace

std::string translate_pattern(const std::string& pattern) {
  return PatternScanner(pattern).run();
}

std::string literal_pattern(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80
        && std::string_view("\\^$.[|()?*+{}]-&#").find(c)
             != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

Regex::Regex(const std::string& pattern) {
  const std::string translated = translate_pattern(pattern);
  int error = 0;
  std::size_t place = 0;
  pcre2_code_8* code = pcre2_compile_8(
    reinterpret_cast<const unsigned char*>(translated.data()),
    translated.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error,
    &place, nullptr);
  if (code == nullptr)
    throw std::invalid_argument(pcre_message(error) + " at byte "
                                + std::to_string(place));
  code_ = std::shared_ptr<const void>(code, [](const void* held) {
    pcre2_code_free_8(static_cast<pcre2_code_8*>(const_cast<void*>(held)));
  });
  // without JIT (an unsupported machine) matching works, but more slowly
  pcre2_jit_compile_8(code, PCRE2_JIT_COMPLETE);
}

bool Regex::occurs_in(std::string_view text) const {
  const auto* code = static_cast<const pcre2_code_8*>(code_.get());
  return first_match(code, MatchScratch(code), text, 0).has_value();
}

std::vector<Range> Regex::matches(std::string_view text) const {
  const auto* code = static_cast<const pcre2_code_8*>(code_.get());
  const MatchScratch scratch(code);
  std::vector<Range> found;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto match = first_match(code, scratch, text, at);
    if (!match)
      break;
    const auto [begin, end] = *match;
    if (end > begin)
      found.push_back(*match);
    if (end >= text.size())
      break;
    at = end > begin ? end : end + char_bytes(text, end);
  }
  return found;
}

} // namespace troupe::models::tokenizer
