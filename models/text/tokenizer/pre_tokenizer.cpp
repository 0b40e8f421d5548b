#include "models/text/tokenizer/pre_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace troupe::models::tokenizer {

namespace {

constexpr const char* gpt2_pattern
  = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Rust's \w, including the joiners that Oniguruma's \w lacks.
constexpr const char* words_pattern
  = R"([\w\p{Join_Control}]+|[^\w\p{Join_Control}\s]+)";

constexpr const char* punctuation_pattern = "[!-/:-@\\[-`{-~\\p{P}]";

using PreStep = PreTokenizer::Step;

/// (range, is a match) from left to right over [0, size).
using MarkedRanges = std::vector<std::pair<Range, bool>>;

void merge_previous(MarkedRanges& parts) {
  MarkedRanges out;
  bool previous_match = false;
  for (const auto& [range, match] : parts) {
    if (match && !previous_match && !out.empty())
      out.back().first.second = range.second;
    else
      out.emplace_back(range, false);
    previous_match = match;
  }
  parts = std::move(out);
}

void merge_next(MarkedRanges& parts) {
  MarkedRanges out;
  bool previous_match = false;
  for (auto it = parts.rbegin(); it != parts.rend(); ++it) {
    if (it->second && !previous_match && !out.empty())
      out.back().first.first = it->first.first;
    else
      out.emplace_back(it->first, false);
    previous_match = it->second;
  }
  std::reverse(out.begin(), out.end());
  parts = std::move(out);
}

void merge_alike(MarkedRanges& parts) {
  MarkedRanges out;
  for (const auto& [range, match] : parts) {
    if (!out.empty() && out.back().second == match)
      out.back().first.second = range.second;
    else
      out.emplace_back(range, match);
  }
  parts = std::move(out);
}

class SplitStep : public PreStep {
public:
  SplitStep(Regex regex, SplitBehavior behavior, bool invert)
    : regex_(std::move(regex)),
      behavior_(behavior),
      invert_(invert) {}

  void apply(Pieces& pieces) const override {
    std::vector<Range> out;
    for (const auto& [begin, end] : pieces.ranges) {
      const auto piece
        = std::string_view(pieces.text).substr(begin, end - begin);
      for (const auto& [from, to] : split_ranges(
             piece.size(), regex_.matches(piece), invert_, behavior_))
        out.emplace_back(begin + from, begin + to);
    }
    pieces.ranges = std::move(out);
  }

private:
  Regex regex_;
  SplitBehavior behavior_;
  bool invert_;
};

/// Rewrites the text of every piece; `rewrite(piece, is_first)` returns the new
/// one.
template <class Rewrite>
void rewrite_pieces(Pieces& pieces, Rewrite rewrite) {
  std::string text;
  std::vector<Range> ranges;
  for (const auto& [begin, end] : pieces.ranges) {
    const std::size_t from = text.size();
    text += rewrite(std::string_view(pieces.text).substr(begin, end - begin),
                    pieces.at_start && begin == 0);
    ranges.emplace_back(from, text.size());
  }
  pieces.text = std::move(text);
  pieces.ranges = std::move(ranges);
}

struct PrefixSpaceStep : PreStep {
  void apply(Pieces& pieces) const override {
    rewrite_pieces(pieces, [](std::string_view piece, bool) {
      return (piece.starts_with(' ') ? "" : " ") + std::string(piece);
    });
  }
};

class MetaspaceStep : public PreStep {
public:
  enum class Prepend { never, first, always };

  MetaspaceStep(std::string mark, Prepend prepend, bool split)
    : mark_(std::move(mark)),
      prepend_(prepend),
      splitter_(literal_pattern(mark_)),
      split_(split) {}

  void apply(Pieces& pieces) const override {
    rewrite_pieces(pieces, [&](std::string_view piece, bool first) {
      std::string out;
      for (const char c : piece)
        out += c == ' ' ? mark_ : std::string(1, c);
      const bool wanted
        = prepend_ == Prepend::always || (prepend_ == Prepend::first && first);
      return wanted && !out.starts_with(mark_) ? mark_ + out : out;
    });
    if (split_)
      SplitStep(splitter_, SplitBehavior::merged_with_next, false)
        .apply(pieces);
  }

private:
  std::string mark_;
  Prepend prepend_;
  Regex splitter_;
  bool split_;
};

SplitBehavior read_behavior(const internal::JsonAt& json) {
  constexpr std::array<std::pair<const char*, SplitBehavior>, 5> known{{
    {"Removed", SplitBehavior::removed},
    {"Isolated", SplitBehavior::isolated},
    {"MergedWithPrevious", SplitBehavior::merged_with_previous},
    {"MergedWithNext", SplitBehavior::merged_with_next},
    {"Contiguous", SplitBehavior::contiguous},
  }};
  const std::string name = json.text();
  for (const auto& [text, behavior] : known)
    if (name == text)
      return behavior;
  json.expected("Removed, Isolated, MergedWithPrevious, MergedWithNext or "
                "Contiguous");
}

std::shared_ptr<const PreStep> read_metaspace(const internal::JsonAt& json) {
  using Prepend = MetaspaceStep::Prepend;
  const std::string scheme = json.text_or(
    "prepend_scheme",
    json.boolean_or("add_prefix_space", true) ? "always" : "never");
  Prepend prepend = Prepend::always;
  if (scheme == "first")
    prepend = Prepend::first;
  else if (scheme == "never")
    prepend = Prepend::never;
  else if (scheme != "always")
    json.at("prepend_scheme").expected("always, first or never");
  return std::make_shared<MetaspaceStep>(json.at("replacement").text(), prepend,
                                         json.boolean_or("split", true));
}

std::shared_ptr<const PreStep>
fixed_split(const char* pattern, SplitBehavior behavior, bool invert) {
  return std::make_shared<SplitStep>(Regex(pattern), behavior, invert);
}

} // namespace

std::vector<Range> split_ranges(std::size_t size,
                                const std::vector<Range>& matches, bool invert,
                                SplitBehavior behavior) {
  MarkedRanges parts;
  std::size_t at = 0;
  for (const Range& match : matches) {
    if (match.first > at)
      parts.emplace_back(Range(at, match.first), invert);
    parts.emplace_back(match, !invert);
    at = match.second;
  }
  if (at < size)
    parts.emplace_back(Range(at, size), invert);
  if (behavior == SplitBehavior::merged_with_previous)
    merge_previous(parts);
  else if (behavior == SplitBehavior::merged_with_next)
    merge_next(parts);
  else if (behavior == SplitBehavior::contiguous)
    merge_alike(parts);
  std::vector<Range> out;
  for (const auto& [range, match] : parts)
    if (behavior != SplitBehavior::removed || !match)
      out.push_back(range);
  return out;
}

Regex read_pattern(const internal::JsonAt& pattern) {
  const bool literal = pattern.has("String");
  const internal::JsonAt text
    = literal ? pattern.at("String") : pattern.at("Regex");
  try {
    return Regex(literal ? literal_pattern(text.text()) : text.text());
  } catch (const std::invalid_argument& error) {
    text.wrong(std::string("the pattern is not supported: ") + error.what());
  }
}

PreTokenizer::PreTokenizer(const internal::JsonAt& json) {
  if (!json.is_null())
    read(json);
}

void PreTokenizer::apply(Pieces& pieces) const {
  for (const auto& step : steps_)
    step->apply(pieces);
}

void PreTokenizer::read(const internal::JsonAt& json) {
  if (byte_level_)
    json.unsupported("a pre-tokenizer after ByteLevel");
  const std::string type = json.at("type").text();
  if (type == "Sequence") {
    const internal::JsonAt list = json.at("pretokenizers");
    for (std::size_t i = 0; i < list.size(); ++i)
      read(list.at(i));
  } else if (type == "ByteLevel") {
    read_byte_level(json);
  } else if (type == "Split") {
    steps_.push_back(std::make_shared<SplitStep>(
      read_pattern(json.at("pattern")), read_behavior(json.at("behavior")),
      json.boolean_or("invert", false)));
  } else if (type == "Metaspace") {
    steps_.push_back(read_metaspace(json));
  } else if (!read_simple(json, type)) {
    json.at("type").unsupported("the pre-tokenizer '" + type + "'");
  }
}

void PreTokenizer::read_byte_level(const internal::JsonAt& json) {
  if (json.boolean_or("add_prefix_space", true))
    steps_.push_back(std::make_shared<PrefixSpaceStep>());
  if (json.boolean_or("use_regex", true))
    steps_.push_back(fixed_split(gpt2_pattern, SplitBehavior::isolated, false));
  byte_level_ = true;
}

bool PreTokenizer::read_simple(const internal::JsonAt& json,
                               const std::string& type) {
  if (type == "BertPreTokenizer") {
    steps_.push_back(fixed_split("\\s", SplitBehavior::removed, false));
    steps_.push_back(
      fixed_split(punctuation_pattern, SplitBehavior::isolated, false));
  } else if (type == "Whitespace") {
    steps_.push_back(fixed_split(words_pattern, SplitBehavior::removed, true));
  } else if (type == "WhitespaceSplit") {
    steps_.push_back(fixed_split("\\s", SplitBehavior::removed, false));
  } else if (type == "Digits") {
    steps_.push_back(fixed_split("\\p{N}",
                                 json.boolean_or("individual_digits", false)
                                   ? SplitBehavior::isolated
                                   : SplitBehavior::contiguous,
                                 false));
  } else if (type == "Punctuation") {
    steps_.push_back(fixed_split(punctuation_pattern,
                                 json.has("behavior")
                                   ? read_behavior(json.at("behavior"))
                                   : SplitBehavior::isolated,
                                 false));
  } else {
    return false;
  }
  return true;
}

} // namespace troupe::models::tokenizer
