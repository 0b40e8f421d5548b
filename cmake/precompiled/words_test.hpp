// Precompiled for tests: words.hpp and googletest.
#include "cmake/precompiled/words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
