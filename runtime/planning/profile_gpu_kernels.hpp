// Measures kernels on the GPUs of a pool, all at once: what the host and a
// graph take for one that does nothing much, and how fast large products are.
#pragma once

#include "config/base/dtype.hpp"
#include "config/model/model_shape.hpp"
#include "plans/cost/hardware.hpp"
#include "runtime/planning/profile_pool.hpp"

namespace troupe::runtime {

/// Sets the seconds of launches, of small copies and of gaps in graphs, with
/// sources.
void measure_gpu_launches(ProfilePool& pool, plans::Hardware& hardware);

/// Sets the rate of products, by the head of a model whose products take
/// `operands`; attention keeps its share of it.
void measure_gpu_products(ProfilePool& pool, const ModelShape& model,
                          DType operands, plans::Hardware& hardware);

} // namespace troupe::runtime
