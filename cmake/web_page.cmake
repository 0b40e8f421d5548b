# Puts the files of runtime/page/web into one HTML document and that into a C++
# source: cmake -DWEB=folder -DOUT=file.cpp -P web_page.cmake
#
# The page's modules become one script: each a function that returns what it
# exports, after those that it imports. Imports and exports are in braces, of one
# name each, and never in a circle. Doc comments, which are mostly types, are left
# out: they would be a fifth of the page.
file(READ "${WEB}/page.html" page)
file(READ "${WEB}/page.css" style)
set(script "")
set(taken "")

function(module_name file out)
  file(RELATIVE_PATH path "${WEB}" "${file}")
  string(MAKE_C_IDENTIFIER "module_${path}" name)
  set(${out} "${name}" PARENT_SCOPE)
endfunction()

macro(add_module file)
  list(FIND taken "${file}" known)
  if(known EQUAL -1)
    list(APPEND taken "${file}")
    add_new_module("${file}")
  endif()
endmacro()

function(add_new_module file)
  file(READ "${file}" text)
  get_filename_component(folder "${file}" DIRECTORY)
  string(REGEX MATCHALL "\nimport {[^}]*} from '[^']*'" imports "${text}")
  foreach(line IN LISTS imports)
    string(REGEX REPLACE ".* from '([^']*)'" "\\1" other "${line}")
    get_filename_component(other "${folder}/${other}" ABSOLUTE)
    add_module("${other}")
  endforeach()
  string(REGEX MATCHALL "\nexport (const|class|function\\*?|async function) [A-Za-z0-9_]+" exports "${text}")
  list(TRANSFORM exports REPLACE ".* " "")
  list(JOIN exports ", " exports)
  foreach(line IN LISTS imports)
    string(REGEX REPLACE ".* from '([^']*)'" "\\1" other "${line}")
    get_filename_component(path "${folder}/${other}" ABSOLUTE)
    module_name("${path}" name)
    string(REPLACE " from '${other}';" " = ${name};" text "${text}")
  endforeach()
  string(REPLACE "\nimport {" "\nconst {" text "${text}")
  string(REPLACE "\nexport " "\n" text "${text}")
  string(REGEX REPLACE "\n? */\\*\\*([^*]|\\*+[^*/])*\\*+/" "" text "${text}")
  module_name("${file}" name)
  set(text "const ${name} = (() => {\n${text}\nreturn { ${exports} };\n})();\n")
  set(script "${script}${text}" PARENT_SCOPE)
  set(taken "${taken}" PARENT_SCOPE)
endfunction()

add_module("${WEB}/main.js")
string(REPLACE "/*STYLE*/" "${style}" page "${page}")
string(REPLACE "/*SCRIPT*/" "${script}" page "${page}")
file(WRITE "${OUT}" "// Made by cmake/web_page.cmake from runtime/page/web.
#include \"runtime/page/trace_server.hpp\"

namespace troupe::runtime {

std::string_view trace_page() {
  return R\"troupe_page(${page})troupe_page\";
}

} // namespace troupe::runtime
")
