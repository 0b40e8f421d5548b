// Precompiled for test programs: what nearly every test includes.
#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
