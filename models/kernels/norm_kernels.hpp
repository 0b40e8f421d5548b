// Norms of rows and of heads with their gradients. A part of backend.hpp.
#pragma once

#include "models/kernels/norm.hpp"
#include "models/kernels/qk_norm.hpp"
#include "models/kernels/typed_ptr.hpp"
#include "models/kernels/workspace.hpp"

#include <cstdint>

namespace troupe::models {

class NormKernels {
public:
  virtual ~NormKernels() = default;

  virtual void norm(const NormShape& shape, ConstTypedPtr x_TH,
                    const NormWeights& weights, TypedPtr y_TH, float* rstd_T)
    = 0;
  virtual void norm_backward(const NormShape& shape, ConstTypedPtr dy_TH,
                             ConstTypedPtr x_TH, const NormWeights& weights,
                             const float* rstd_T, TypedPtr dx_TH,
                             const NormGrads& grads, Workspace& workspace)
    = 0;

  virtual void qk_norm(const QkNormShape& shape, const float* weight_D,
                       TypedPtr x, TypedPtr raw_TX)
    = 0;
  virtual void qk_norm_backward(const QkNormShape& shape, const float* weight_D,
                                ConstTypedPtr raw_TX, TypedPtr dx,
                                float* d_weight_D, Workspace& workspace)
    = 0;
  virtual void head_sums(const QkNormShape& shape, const TypedRowPair& rows,
                         const float* weight, float* sums_T)
    = 0;
};

} // namespace troupe::models
