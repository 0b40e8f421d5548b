#include "runtime/base/command_line_error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace troupe::runtime {

namespace {

/// Returns the deepest command that the arguments so far name, like `plan
/// check`.
const CLI::App* deepest_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? &app : deepest_command(*parsed.front());
}

/// Returns the option of `command` that CLI11's text is about: "--n: Value
/// ...", "Could not convert: --n = x", "--a excludes --b". nullptr: none.
const CLI::Option* option_in(const CLI::App& command, std::string text) {
  constexpr std::string_view conversion = "Could not convert: ";
  if (text.starts_with(conversion))
    text.erase(0, conversion.size());
  const auto name = text.substr(0, text.find_first_of(": "));
  return command.get_option_no_throw(name);
}

/// Rewrites CLI11's text of a range ("INT in [30 - 3600]") for users; "" if it
/// is none.
std::string within(const std::string& limit) {
  const std::string opens = " in [", between = " - ";
  const auto begin = limit.find(opens);
  const auto middle = limit.find(between, begin);
  if (begin == limit.npos || middle == limit.npos)
    return "";
  const auto least = begin + opens.size(), most = middle + between.size();
  return " from " + limit.substr(least, middle - least) + " to "
         + limit.substr(most, limit.size() - 1 - most);
}

/// Rewrites CLI11's type text ("INT:POSITIVE", "TEXT:{a,b}") for users.
std::string taken_by(const CLI::Option& option) {
  static const std::map<std::string, std::string> nouns
    = {{"INT", "a whole number"},
       {"UINT", "a whole number"},
       {"FLOAT", "a number"},
       {"TEXT", "a value"}};
  static const std::map<std::string, std::string> ranges
    = {{"POSITIVE", " > 0"},
       {"NONNEGATIVE", " >= 0"},
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
         + (range == ranges.end() ? within(limit) : range->second);
}

/// Returns the error for an option that takes something else; if that is
/// unknown, CLI11's own text.
ConfigError wrong_value(const CLI::App& command, const CLI::ParseError& error,
                        ConfigError::Parts parts) {
  const std::string text = error.what();
  const auto* option = option_in(command, text);
  if (option == nullptr) {
    parts.expected = "what " + command_path(&command) + " takes";
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

std::string command_path(const CLI::App* command) {
  return command->get_parent() == nullptr
           ? command->get_name()
           : command_path(command->get_parent()) + " " + command->get_name();
}

std::string help_of(const CLI::App* command) {
  return "`" + command_path(command) + " --help`";
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const auto* command : app.get_subcommands({}))
    commands.push_back(command->get_name());
  return commands;
}

ConfigError command_line_error(const CLI::App& app,
                               const CLI::ParseError& error) {
  const auto* command = deepest_command(app);
  const std::string text = error.what();
  ConfigError::Parts parts{.place = {"command line", 0},
                           .path = "",
                           .expected = "",
                           .got = "",
                           .hint = help_of(command)};
  if (const auto extra = command->remaining(); !extra.empty()) {
    parts.expected = "what " + command_path(command) + " takes";
    parts.got = "'" + extra.front() + "'";
    return ConfigError(parts);
  }
  const auto missing = text.find(" is required");
  if (missing == text.npos)
    return wrong_value(*command, error, parts);
  const bool lacks_command = !commands_of(*command).empty();
  parts.path = lacks_command ? "" : text.substr(0, missing);
  parts.expected
    = lacks_command
        ? fmt::format("a command ({})", fmt::join(commands_of(*command), ", "))
        : "a value";
  parts.got = "nothing";
  return ConfigError(parts);
}

} // namespace troupe::runtime
