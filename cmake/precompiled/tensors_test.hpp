// Precompiled for tests: tensors.hpp and googletest.
#include <gtest/gtest.h>

#include "cmake/precompiled/tensors.hpp"
#include <gmock/gmock.h>
