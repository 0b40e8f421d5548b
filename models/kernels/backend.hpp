// The arithmetic of one device over raw pointers to its memory, on which the
// stack, its gradient, losses, the optimizer and generation are written: by our
// own host kernels (host_backend.hpp) or ATen on any device (aten_backend.hpp).
// An interface per concept, so that what needs one takes that.
//
// Weights of products, activations and cached keys and values are fp32 or bf16
// (typed_ptr.hpp); kernels compute and sum in fp32 and round what they store.
// Statistics, logits, parameters of norms, gradients of weights and optimizer
// states are fp32.
//
// Kernels run in call order and may return before they are done. Spans, host
// tables and shapes are read during the call. Kernels are documented at their
// host versions. Weight tensors are views of device memory.
#pragma once

#include "models/kernels/attention_kernels.hpp"
#include "models/kernels/device_access.hpp"
#include "models/kernels/logit_kernels.hpp"
#include "models/kernels/mlp_kernels.hpp"
#include "models/kernels/norm_kernels.hpp"
#include "models/kernels/optimizer_kernels.hpp"
#include "models/kernels/product_kernels.hpp"
#include "models/kernels/row_kernels.hpp"

namespace troupe::models {

class Backend : public DeviceAccess,
                public RowKernels,
                public ProductKernels,
                public NormKernels,
                public AttentionKernels,
                public MlpKernels,
                public LogitKernels,
                public OptimizerKernels {};

} // namespace troupe::models
