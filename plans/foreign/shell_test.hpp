// The tests of a shell, `[ a == b ]` and `[[ -z a ]]`, as far as texts decide
// them; files and numbers are not looked at.
#pragma once

#include "plans/foreign/shell_script.hpp"

#include <optional>

namespace troupe::plans {

/// Returns whether a command only tests: what follows it depends on it.
bool is_shell_test(const ShellCommand& words);

/// Returns whether a test holds; none for other tests and commands. A variable
/// that nobody set is empty.
std::optional<bool> value_of_test(const ShellCommand& words);

} // namespace troupe::plans
