// The files that `troupe new workflow NAME` writes: a small user-defined
// program that trains as it is. It has one of each: a setting, an actor with
// state, a function over the responses to a prompt, and a loss.
// docs/custom_workflows.md explains a larger one.
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
/// `name`. Throws ConfigError unless the name is valid in C++, CMake and YAML
/// alike (a lower-case letter, then lower-case letters, digits and `_`) and is
/// used by none of them, nor by the settings.
std::vector<TemplateFile> workflow_template(const std::string& name);

} // namespace troupe::runtime
