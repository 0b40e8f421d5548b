// Inputs of a run beside its settings, whose changes matter as those of
// settings do: `data.train` and `workflow` may be names of files, and the calls
// of a user-defined workflow are in its C++.
#pragma once

#include "config/settings/settings.hpp"
#include "plans/workflow/workflow.hpp"
#include "runtime/run_folder/resume.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::runtime {

/// Descriptions by name: "calls.ref_inf", "the file of data.train".
using RunInputs = std::map<std::string, std::string>;

/// Name of the data file's entry.
inline constexpr const char* data_file_input = "the file of data.train";

/// Returns "2048 bytes (CRC-32 1f3a5c7e)". Reads the whole file; throws
/// FailureError (io) naming it.
std::string file_mark(const std::filesystem::path& file);

/// Returns the inputs; reads the data file once. Calls that only show metrics
/// are left out, as metrics may change over a run.
RunInputs inputs_of(const Settings& settings, const plans::Workflow& workflow);

std::string print_inputs(const RunInputs& inputs);
/// Throws ConfigError for a text that is not one of print_inputs; `file` is for
/// messages.
RunInputs parse_inputs(const std::string& text, const std::string& file);

std::vector<SettingChange> changed_inputs(const RunInputs& before,
                                          const RunInputs& now);

} // namespace troupe::runtime
