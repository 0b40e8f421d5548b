// Precompiled for tests: actors.hpp and googletest.
#include <gtest/gtest.h>

#include "cmake/precompiled/actors.hpp"
#include <gmock/gmock.h>
