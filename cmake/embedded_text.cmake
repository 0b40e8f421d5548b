# Puts a text file into a C++ source as a function that returns it:
# cmake -DIN=file -DOUT=file.cpp -DHEADER=path -DNAMESPACE=a::b -DNAME=function
#   -P embedded_text.cmake
file(READ "${IN}" text)
file(WRITE "${OUT}" "// Made by cmake/embedded_text.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

std::string_view ${NAME}() {
  return R\"troupe_text(${text})troupe_text\";
}

} // namespace ${NAMESPACE}
")
