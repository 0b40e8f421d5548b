#include "plans/memory/stored_types.hpp"

#include <gtest/gtest.h>

namespace troupe::plans {
namespace {

TEST(StoredTypes, OfACpuAreFp32WhateverItsProductsAre) {
  EXPECT_EQ(stored_types(StorageRule::host, DType::bf16), StoredTypes{});
  EXPECT_EQ(StoredTypes{}.cache, DType::f32);
}

TEST(StoredTypes, OfAGpuAreThoseOfProductsForActivationsCacheAndGathers) {
  const auto types = stored_types(StorageRule::gpu, DType::bf16);
  EXPECT_EQ(types.activations, DType::bf16);
  EXPECT_EQ(types.cache, DType::bf16);
  EXPECT_EQ(types.gathered, DType::bf16);
  EXPECT_EQ(types.weights, DType::f32);
  EXPECT_EQ(types.statistics, DType::f32);
  EXPECT_EQ(types.expert_rows, DType::f32);
  EXPECT_EQ(stored_types(StorageRule::gpu, DType::f32), StoredTypes{});
}

TEST(StoredTypes, OfPublishedSystemsAreThoseOfProducts) {
  const auto types = stored_types(StorageRule::published, DType::bf16);
  EXPECT_EQ(types.weights, DType::bf16);
  EXPECT_EQ(types.gathered, DType::bf16);
  EXPECT_EQ(types.activations, DType::bf16);
  EXPECT_EQ(types.statistics, DType::bf16);
}

} // namespace
} // namespace troupe::plans
