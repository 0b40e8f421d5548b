#include "models/gpu/fixed_order.hpp"

#include <ATen/Context.h>
#include <c10/util/env.h>

namespace troupe::models {

namespace {

std::mutex fixed_order_mutex;

} // namespace

FixedOrder::FixedOrder() : alone_(fixed_order_mutex) {
  // Otherwise libtorch fills new memory before kernels write it.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
}

FixedOrder::~FixedOrder() {
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

void FixedOrder::allow_products() {
  c10::utils::set_env("CUBLAS_WORKSPACE_CONFIG", ":4096:8",
                      /*overwrite=*/false);
}

} // namespace troupe::models
