// The same as words.hpp for the library text, which is compiled with the flags
// of models: GCC takes a precompiled header with its own flags only.
#include "cmake/precompiled/words.hpp"
