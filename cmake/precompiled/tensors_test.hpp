// Precompiled for tests: tensors.hpp and googletest.
#include "cmake/precompiled/tensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
