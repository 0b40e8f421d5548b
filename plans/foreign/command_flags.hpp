// The settings in a command line: `--key value`, `--key=value`, `--flag` and
// Hydra's `key=value`, `+key=value`.
#pragma once

#include "plans/foreign/shell_script.hpp"

namespace troupe::plans {

/// Returns the settings of all commands of a script that start a program with
/// flags, and the names of these programs. Dashes in a key become underscores;
/// keys of `trl vllm-serve` begin with "vllm_serve.".
ForeignConfig flags_of(const ShellScript& script);

/// Returns one "key=value" as a setting; `~key` removes it.
ForeignValue override_of(const std::string& word, const Place& place);

} // namespace troupe::plans
