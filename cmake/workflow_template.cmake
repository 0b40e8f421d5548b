# Puts the files of examples/my_workflow into a C++ source:
# cmake -DEXAMPLE=folder -DOUT=file.cpp -P workflow_template.cmake
set(files "")
foreach(name IN ITEMS my_workflow.hpp main.cpp CMakeLists.txt my_workflow.yaml)
  file(READ "${EXAMPLE}/${name}" text)
  string(APPEND files "    {\"${name}\", R\"troupe_file(${text})troupe_file\"},\n")
endforeach()
file(WRITE "${OUT}" "// Made by cmake/workflow_template.cmake from examples/my_workflow.
#include \"runtime/commands/workflow_template.hpp\"

namespace troupe::runtime {

std::vector<TemplateFile> example_files() {
  return {
${files}  };
}

} // namespace troupe::runtime
")
