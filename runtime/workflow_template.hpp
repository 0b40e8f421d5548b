// The files that `troupe new workflow NAME` writes: a small program of one's
// own that trains as it is. It has one of each: a setting, an actor with state,
// a function over the answers to a prompt, and a loss. docs/own_workflow.md
// goes through a larger one.
#pragma once

#include <string>
#include <vector>

namespace troupe::runtime {

struct TemplateFile {
  std::string name; ///< inside the program's folder
  std::string text;
};

/// Returns the files of examples/my_workflow (made by
/// cmake/workflow_template.cmake).
std::vector<TemplateFile> example_files();

/// Returns NAME.hpp, main.cpp, CMakeLists.txt and NAME.yaml of the workflow
/// `name`. Throws ConfigError unless the name is one in C++, CMake and YAML
/// alike (a lower-case letter, then lower-case letters, digits and `_`) that
/// none of them uses, nor the settings.
std::vector<TemplateFile> workflow_template(const std::string& name);

} // namespace troupe::runtime
