#include "config/settings/reward_rule.hpp"

#include "config/base/did_you_mean.hpp"
#include "config/settings/settings_schema.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

enum class Argument : std::uint8_t { none, optional, number };

struct RuleWord {
  const char* name;
  RuleKind kind;
  Argument argument;
};

constexpr std::array rule_words{
  RuleWord{"auto", RuleKind::automatic, Argument::none},
  RuleWord{"exact", RuleKind::exact, Argument::none},
  RuleWord{"gsm8k", RuleKind::gsm8k, Argument::none},
  RuleWord{"number", RuleKind::number, Argument::none},
  RuleWord{"boxed", RuleKind::boxed, Argument::none},
  RuleWord{"regex", RuleKind::regex, Argument::optional},
  RuleWord{"format", RuleKind::format, Argument::optional},
  RuleWord{"length", RuleKind::length, Argument::number},
};

/// Returns true for a whole number >= 1 that fits an int.
bool is_count(const std::string& text) {
  constexpr std::size_t most_digits = 9;
  return !text.empty() && text.size() <= most_digits && text.front() != '0'
         && std::ranges::all_of(text,
                                [](char c) { return c >= '0' && c <= '9'; });
}

const std::vector<std::string>& reward_rule_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& word : rule_words)
      all.emplace_back(word.name);
    return all;
  }();
  return names;
}

} // namespace

RewardRule parse_reward_rule(const std::string& text, const Place& place,
                             const std::string& path) {
  const auto colon = std::min(text.find(':'), text.size());
  const auto name = text.substr(0, colon);
  const auto argument = text.substr(std::min(colon + 1, text.size()));
  const auto word = std::ranges::find(rule_words, name, &RuleWord::name);
  const auto refuse
    = [&](const std::string& expected, const std::string& hint) {
        throw ConfigError({.place = place,
                           .path = path,
                           .expected = expected,
                           .got = "'" + text + "'",
                           .hint = hint});
      };
  if (word == rule_words.end())
    refuse("one of " + join_or(reward_rule_names()),
           nearest_word(name, reward_rule_names()));
  if (word->argument == Argument::none && colon < text.size())
    refuse(name + " without an argument", name);
  if (word->argument == Argument::number && !is_count(argument))
    refuse(name + ":N with the most tokens N >= 1", name + ":200");
  return {word->kind, name, argument};
}

} // namespace troupe
