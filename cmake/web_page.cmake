# Puts the files of runtime/page/web into one HTML document and that into a C++
# source: cmake -DWEB=folder -DOUT=file.cpp -P web_page.cmake
file(READ "${WEB}/page.html" page)
file(READ "${WEB}/page.css" style)
set(script "")
file(GLOB parts "${WEB}/*.js")
list(SORT parts)
foreach(part IN LISTS parts)
  file(READ "${part}" text)
  string(APPEND script "${text}")
endforeach()
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
