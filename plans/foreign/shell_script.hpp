// Reads a shell script as far as launch scripts go: variables, arrays, defaults
// (`${X:-8}`), arithmetic, quotes, continued lines, here-documents, simple
// conditions, `&&` and `||`. Nothing is run: what depends on the machine stays
// as text ("$HOME", "$(nproc)"), and a note says what was not followed.
#pragma once

#include "plans/foreign/foreign_config.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::plans {

struct ShellWord {
  std::string text;
  Place place;
};
using ShellCommand = std::vector<ShellWord>;

struct ShellScript {
  std::vector<ShellCommand> commands = {}; ///< those that would run
  std::vector<ForeignNote> notes = {};
};

/// Reads the script `text`; `variables` are set before it starts, as by the
/// environment.
ShellScript read_shell(const std::string& text, const std::string& file,
                       const std::map<std::string, std::string>& variables
                       = {});

/// Returns the value of a shell's arithmetic, such as "1024 * (2 + x)"; none
/// for anything but whole numbers, known names and + - * / % ( ).
std::optional<std::int64_t>
shell_arithmetic(std::string_view text,
                 const std::map<std::string, std::string>& variables);

} // namespace troupe::plans
