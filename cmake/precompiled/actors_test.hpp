// Precompiled for tests: actors.hpp and googletest.
#include "cmake/precompiled/actors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
