// The calls of a workflow file, and what its parts have in common. Private to
// config.
#pragma once

#include "config/settings_schema.hpp"
#include "config/workflow_file.hpp"

namespace troupe {

[[noreturn]] void file_mistake(const YamlNode& node, const std::string& path,
                               const std::string& expected,
                               const std::string& got,
                               const std::string& hint = "");
/// Refuses keys of a mapping other than `known`.
void check_file_keys(const YamlNode& node, const std::string& path,
                     const std::vector<std::string>& known);
/// The setting that was meant, of those that `wanted` picks.
std::string meant_setting(const std::string& path,
                          bool (*wanted)(const Field&));

FileCall read_file_call(const std::string& name, const YamlNode& node);
/// What shows only beside the other calls. Throws ConfigError.
void check_file_calls(const WorkflowFile& workflow);

} // namespace troupe
