#include "models/rewards/reward_rules.hpp"

#include "config/settings/settings.hpp"
#include "models/text/tokenizer/regex.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>

namespace troupe::models {

namespace {

constexpr const char* thinking_format
  = "<think>.*</think>\\s*<answer>.*</answer>\\s*";

// -- texts -------------------------------------------------------------------

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const auto begin = text.find_first_not_of(blanks);
  return begin == text.npos
           ? std::string_view{}
           : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Returns the text after the last `mark`.
std::optional<std::string_view> behind_last(std::string_view text,
                                            std::string_view mark) {
  const auto at = text.rfind(mark);
  if (at == text.npos)
    return std::nullopt;
  return text.substr(at + mark.size());
}

/// Returns the content of the last \boxed{...}, with balanced braces.
std::optional<std::string_view> last_boxed(std::string_view text) {
  const auto rest = behind_last(text, "\\boxed{");
  if (!rest)
    return std::nullopt;
  int depth = 1;
  for (std::size_t i = 0; i < rest->size(); ++i) {
    depth += (*rest)[i] == '{' ? 1 : (*rest)[i] == '}' ? -1 : 0;
    if (depth == 0)
      return rest->substr(0, i);
  }
  return std::nullopt;
}

// -- numbers -----------------------------------------------------------------

struct FoundNumber {
  double value = 0;
  std::size_t end = 0; ///< after its last character
};

/// Returns a number that begins at `at`: sign, digits with commas, decimals.
std::optional<FoundNumber> number_at(std::string_view text, std::size_t at) {
  std::string digits;
  bool any = false;
  if (at < text.size() && (text[at] == '-' || text[at] == '+'))
    digits += text[at++];
  if (at < text.size() && text[at] == '$')
    ++at;
  for (bool point = false; at < text.size(); ++at) {
    const char c = text[at];
    const bool digit_follows = at + 1 < text.size() && is_digit(text[at + 1]);
    if (c == ',' && any && !point && digit_follows)
      continue;
    if (c == '.' && !point && digit_follows)
      point = true;
    else if (!is_digit(c))
      break;
    any = any || is_digit(c);
    digits += c;
  }
  if (!any)
    return std::nullopt;
  return FoundNumber{std::strtod(digits.c_str(), nullptr), at};
}

/// Returns the number that the whole text consists of: "72", "$1,080.", "-3 %".
std::optional<double> whole_number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('$'))
    text.remove_prefix(1);
  const auto found = number_at(text, 0);
  if (!found)
    return std::nullopt;
  const auto rest = trimmed(text.substr(found->end));
  if (!rest.empty() && rest != "." && rest != "%" && rest != "\\%")
    return std::nullopt;
  return found->value;
}

std::optional<double> first_number(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if (const auto found = number_at(text, at))
      return found->value;
  return std::nullopt;
}

std::optional<double> last_number(std::string_view text) {
  std::optional<double> last;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = number_at(text, at);
    if (found)
      last = found->value;
    at = found ? found->end : at + 1;
  }
  return last;
}

/// Returns the number directly after the mark, ignoring blanks and a currency.
std::optional<double> hash_number(std::string_view text) {
  const auto rest = behind_last(text, "####");
  if (!rest)
    return std::nullopt;
  auto answer = trimmed(*rest);
  if (answer.starts_with('$'))
    answer.remove_prefix(1);
  const auto found = number_at(answer, 0);
  return found ? std::optional(found->value) : std::nullopt;
}

std::optional<double> final_number(std::string_view text) {
  if (const auto found = hash_number(text))
    return found;
  if (const auto boxed = last_boxed(text))
    if (const auto found = first_number(*boxed))
      return found;
  return last_number(text);
}

bool same_number(double a, double b) {
  constexpr double relative = 1e-9;
  return std::abs(a - b) <= relative * std::max(1.0, std::abs(b));
}

/// Returns a formula without its purely visual parts.
std::string plain_formula(std::string_view text) {
  std::string plain(trimmed(text));
  const auto drop = [&](std::string_view what, std::string_view by) {
    for (auto at = plain.find(what); at != plain.npos;
         at = plain.find(what, at)) {
      plain.replace(at, what.size(), by);
      at += by.size();
    }
  };
  for (const char* what : {"\\left", "\\right", "\\!", "\\,", "\\;", "\\$", "$",
                           " ", "\n", "\t", "^{\\circ}", "^\\circ", "\\%", "%"})
    drop(what, "");
  for (const char* what : {"\\tfrac", "\\dfrac"})
    drop(what, "\\frac");
  if (plain.ends_with('.'))
    plain.pop_back();
  return plain;
}

bool same_formula(std::string_view answer, std::string_view truth) {
  const auto a = whole_number(answer);
  const auto b = whole_number(truth);
  return a && b ? same_number(*a, *b)
                : plain_formula(answer) == plain_formula(truth);
}

// -- rules -------------------------------------------------------------------

struct NoTruth : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string_view truth_of(const RewardItem& item) {
  const auto truth = trimmed(item.ground_truth);
  if (truth.empty())
    throw NoTruth("ground_truth: expected the right answer, got nothing; try "
                  "data.fields: {ground_truth: COLUMN}");
  return truth;
}

double true_number(const RewardItem& item) {
  const auto found = final_number(truth_of(item));
  if (!found)
    throw NoTruth("ground_truth: expected a number, got '" + item.ground_truth
                  + "'");
  return *found;
}

double length_score(const RewardItem& item, double most) {
  const double over = std::max(0.0, item.num_tokens - most);
  return std::max(0.0, 1.0 - over / most);
}

/// A rule and the name of its scores; "": that of the selected rule.
struct LabelledRule {
  std::string label;
  RewardRule rule;
};

class RuleRewarder : public Rewarder {
public:
  /// Throws std::runtime_error for an invalid pattern.
  explicit RuleRewarder(std::vector<LabelledRule> rules)
    : rules_(std::move(rules)) {
    for (const auto& [label, rule] : rules_)
      if (rule.kind == RuleKind::format
          || (rule.kind == RuleKind::regex && !rule.argument.empty()))
        pattern(rule, rule.argument);
  }

  void score(const RewardRound& round) override {
    std::size_t number = 0;
    for (auto items = round.take(); !items.empty(); items = round.take())
      for (const auto& item : items)
        round.on_score(number++, score_one(item));
  }

private:
  RewardScore score_one(const RewardItem& item) {
    RewardScore score;
    try {
      for (const auto& [label, rule] : rules_) {
        const auto chosen = chosen_rule(rule, item);
        score.parts.emplace_back(label.empty() ? chosen.name : label,
                                 value(chosen, item));
      }
    } catch (const std::runtime_error& error) { // no truth, or PCRE gave up
      score.error = error.what();
    }
    return score;
  }

  double value(const RewardRule& rule, const RewardItem& item) {
    const auto& response = item.response;
    switch (rule.kind) {
    case RuleKind::exact:
      return trimmed(response) == truth_of(item) ? 1 : 0;
    case RuleKind::gsm8k:
    case RuleKind::number: {
      const double truth = true_number(item);
      const auto found = rule.kind == RuleKind::gsm8k ? hash_number(response)
                                                      : final_number(response);
      return found && same_number(*found, truth) ? 1 : 0;
    }
    case RuleKind::boxed: {
      const auto truth = truth_of(item);
      const auto found = last_boxed(response);
      return found && same_formula(*found, last_boxed(truth).value_or(truth))
               ? 1
               : 0;
    }
    case RuleKind::regex: {
      const auto text
        = rule.argument.empty() ? std::string(truth_of(item)) : rule.argument;
      return pattern(rule, text).occurs_in(response) ? 1 : 0;
    }
    case RuleKind::format:
      return pattern(rule, rule.argument).occurs_in(response) ? 1 : 0;
    case RuleKind::length:
      return length_score(item, std::stod(rule.argument));
    case RuleKind::automatic:
      break;
    }
    TROUPE_CHECK(false, "auto chose no rule");
    return 0;
  }

  /// Returns a pattern, compiled once; those of truths, which differ by row,
  /// are cached a few at a time.
  const tokenizer::Regex& pattern(const RewardRule& rule,
                                  const std::string& argument) {
    constexpr std::size_t most = 1024;
    auto text = argument;
    if (rule.kind == RuleKind::format)
      text = "(?s)\\A(?:" + (text.empty() ? thinking_format : text) + ")\\z";
    const auto found = patterns_.find(text);
    if (found != patterns_.end())
      return found->second;
    if (patterns_.size() >= most)
      patterns_.clear();
    try {
      return patterns_.emplace(text, tokenizer::Regex(text)).first->second;
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error("'" + text + "' is no pattern: " + error.what());
    }
  }

  std::vector<LabelledRule> rules_;
  std::map<std::string, tokenizer::Regex> patterns_;
};

bool mentions(const std::string& text, std::string_view word) {
  const auto same = [](char a, char b) { return (a | 0x20) == b; };
  return !std::ranges::search(text, word, same).empty();
}

RewardRule named(RuleKind kind, const char* name) {
  return {kind, name, ""};
}

} // namespace

RewardRule chosen_rule(const RewardRule& rule, const RewardItem& item) {
  if (rule.kind != RuleKind::automatic)
    return rule;
  if (mentions(item.data_source, "gsm8k"))
    return named(RuleKind::gsm8k, "gsm8k");
  if (mentions(item.data_source, "math") || mentions(item.data_source, "aime"))
    return named(RuleKind::boxed, "boxed");
  if (hash_number(item.ground_truth))
    return named(RuleKind::gsm8k, "gsm8k");
  return whole_number(item.ground_truth) ? named(RuleKind::number, "number")
                                         : named(RuleKind::exact, "exact");
}

std::unique_ptr<Rewarder> make_rule_rewarder(const Settings& settings) {
  const auto& reward = settings.reward;
  const std::string path
    = reward.weights.empty() ? "reward.rule" : "reward.weights";
  const auto place = place_of(settings, path);
  std::vector<LabelledRule> rules;
  for (const auto& [name, weight] : reward.weights)
    rules.push_back({name, parse_reward_rule(name, place, path)});
  if (rules.empty())
    rules.push_back({"", parse_reward_rule(reward.rule, place, path)});
  try {
    return std::make_unique<RuleRewarder>(std::move(rules));
  } catch (const std::runtime_error& error) {
    throw ConfigError({.place = place,
                       .path = path,
                       .expected = "a regular expression",
                       .got = error.what(),
                       .hint = ""});
  }
}

} // namespace troupe::models
