// The calls of a workflow file, and helpers shared by its readers. Private to
// config.
#pragma once

#include "config/settings/settings_schema.hpp"
#include "config/settings/workflow_file.hpp"

namespace troupe {

[[noreturn]] void file_mistake(const YamlNode& node, const std::string& path,
                               const std::string& expected,
                               const std::string& got,
                               const std::string& hint = "");
/// Refuses keys of a mapping other than `known`.
void check_file_keys(const YamlNode& node, const std::string& path,
                     const std::vector<std::string>& known);
/// Returns the setting that was meant, among those that `wanted` selects.
std::string meant_setting(const std::string& path,
                          bool (*wanted)(const Field&));

/// Returns the keys that a generation writes unless a file names others.
const std::vector<std::string>& generated_keys();
FileCall read_file_call(const std::string& name, const YamlNode& node);
/// Checks what is only visible in combination with other calls. Throws
/// ConfigError.
void check_file_calls(const WorkflowFile& workflow);

} // namespace troupe
