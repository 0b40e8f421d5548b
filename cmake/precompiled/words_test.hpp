// Precompiled for tests: words.hpp and googletest.
#include <gtest/gtest.h>

#include "cmake/precompiled/words.hpp"
#include <gmock/gmock.h>
