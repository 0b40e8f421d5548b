// What CLI11 complains about, in the words of all other mistakes: the option,
// what it takes, what it got.
#pragma once

#include "config/error.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace troupe::runtime {

/// "troupe plan check".
std::string verb_path(const CLI::App* verb);
/// "`troupe plan check --help`".
std::string help_of(const CLI::App* verb);
/// The verbs below `app`.
std::vector<std::string> verbs_of(const CLI::App& app);

/// "command line: --top-p: expected a number > 0 and <= 1, got '2'; try ..".
ConfigError command_line_error(const CLI::App& app,
                               const CLI::ParseError& error);

} // namespace troupe::runtime
