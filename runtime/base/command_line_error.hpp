// CLI11's errors in the style of all other mistakes: the option, what it takes,
// what it got.
#pragma once

#include "config/base/error.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace troupe::runtime {

/// Returns the path of a command, like "troupe plan check".
std::string command_path(const CLI::App* command);
/// Returns the command that shows its help, like "`troupe plan check --help`".
std::string help_of(const CLI::App* command);
/// Returns the commands below `app`.
std::vector<std::string> commands_of(const CLI::App& app);

/// Returns an error like "command line: --top-p: expected a number > 0 and <=
/// 1, got '2'; try ...".
ConfigError command_line_error(const CLI::App& app,
                               const CLI::ParseError& error);

} // namespace troupe::runtime
