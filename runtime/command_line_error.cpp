#include "runtime/command_line_error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace troupe::runtime {

namespace {

/// The deepest verb that the words so far name: `plan check`.
const CLI::App* deepest_verb(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? &app : deepest_verb(*parsed.front());
}

/// The option of `verb` that CLI11 speaks of: "--n: Value ..", "Could not
/// convert: --n = x", "--a excludes --b". nullptr: of none.
const CLI::Option* option_in(const CLI::App& verb, std::string text) {
  constexpr std::string_view conversion = "Could not convert: ";
  if (text.starts_with(conversion))
    text.erase(0, conversion.size());
  const auto name = text.substr(0, text.find_first_of(": "));
  return verb.get_option_no_throw(name);
}

/// What CLI11's type text ("INT:POSITIVE", "TEXT:{a,b}") says to people.
std::string taken_by(const CLI::Option& option) {
  static const std::map<std::string, std::string> nouns
    = {{"INT", "a whole number"},
       {"UINT", "a whole number"},
       {"FLOAT", "a number"},
       {"TEXT", "a value"}};
  static const std::map<std::string, std::string> ranges
    = {{"POSITIVE", " > 0"},
       {"NONNEGATIVE", " >= 0"},
       {"FLOAT in [0 - 1]", " from 0 to 1"},
       {"FLOAT in (0 - 1]", " > 0 and <= 1"}};
  const auto type = option.get_type_name();
  const auto colon = type.find(':');
  const auto limit = colon == type.npos ? "" : type.substr(colon + 1);
  if (limit.starts_with('{'))
    return "one of " + limit.substr(1, limit.size() - 2);
  if (type == "UINT")
    return "a whole number >= 0";
  const auto noun = nouns.find(type.substr(0, colon));
  const auto range = ranges.find(limit);
  return (noun == nouns.end() ? type : noun->second)
         + (range == ranges.end() ? "" : range->second);
}

/// Of an option that takes something else; nothing known: CLI11's own words.
ConfigError wrong_value(const CLI::App& verb, const CLI::ParseError& error,
                        ConfigError::Parts parts) {
  const std::string text = error.what();
  const auto* option = option_in(verb, text);
  if (option == nullptr) {
    parts.expected = "what " + verb_path(&verb) + " takes";
    parts.got = text;
    return ConfigError(parts);
  }
  parts.path = option->get_name();
  const auto excludes = text.find(" excludes ");
  if (excludes != text.npos) {
    parts.expected = parts.path + " or " + text.substr(excludes + 10);
    parts.got = "both";
    return ConfigError(parts);
  }
  const auto& given = option->results();
  parts.expected = taken_by(*option);
  parts.got
    = given.empty() ? "nothing" : fmt::format("'{}'", fmt::join(given, " "));
  return ConfigError(parts);
}

} // namespace

std::string verb_path(const CLI::App* verb) {
  return verb->get_parent() == nullptr
           ? verb->get_name()
           : verb_path(verb->get_parent()) + " " + verb->get_name();
}

std::string help_of(const CLI::App* verb) {
  return "`" + verb_path(verb) + " --help`";
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const auto* verb : app.get_subcommands({}))
    verbs.push_back(verb->get_name());
  return verbs;
}

ConfigError command_line_error(const CLI::App& app,
                               const CLI::ParseError& error) {
  const auto* verb = deepest_verb(app);
  const std::string text = error.what();
  ConfigError::Parts parts{.place = {"command line", 0},
                           .path = "",
                           .expected = "",
                           .got = "",
                           .hint = help_of(verb)};
  if (const auto extra = verb->remaining(); !extra.empty()) {
    parts.expected = "what " + verb_path(verb) + " takes";
    parts.got = "'" + extra.front() + "'";
    return ConfigError(parts);
  }
  const auto missing = text.find(" is required");
  if (missing == text.npos)
    return wrong_value(*verb, error, parts);
  const bool lacks_verb = !verbs_of(*verb).empty();
  parts.path = lacks_verb ? "" : text.substr(0, missing);
  parts.expected
    = lacks_verb ? fmt::format("a verb ({})", fmt::join(verbs_of(*verb), ", "))
                 : "a value";
  parts.got = "nothing";
  return ConfigError(parts);
}

} // namespace troupe::runtime
