// Low-rank adapters of a layer's matrices (config/model/lora.hpp): what they
// add to a product, their gradients, and the matrix with them added, which
// generation computes with.
//
// T rows, R rank; A is [R, in], B is [out, R].
#pragma once

#include "models/kernels/linear.hpp"
#include "models/kernels/workspace.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace troupe::models {

/// The pair of one matrix in one plane (weights or gradients).
struct Adapter {
  at::Tensor a; ///< [R, in]
  at::Tensor b; ///< [out, R]

  bool defined() const {
    return a.defined();
  }
  std::int64_t rank() const {
    return a.size(0);
  }
};

/// The adapters of one layer; undefined ones do not exist.
struct LayerAdapters {
  Adapter q, k, v, o;
  Adapter gate, up, down;
};

/// How adapters are computed.
struct AdapterMath {
  Backend& backend;
  ProductRows rows;
  float scale = 0; ///< alpha / rank
  Workspace& workspace;

  /// Computes y[T, out] += scale B A x.
  void add(const Adapter& adapter, ConstRowsView x, RowsView y) const;
  /// Adds the gradient of x to `dx`, given dy.
  void input_gradient(const Adapter& adapter, ConstRowsView dy,
                      RowsView dx) const;
  /// Adds the gradients of A and B to `grads`.
  void weight_gradients(const Adapter& adapter, const Adapter& grads,
                        ConstRowsView dy, ConstRowsView x) const;

private:
  /// Returns scale A x, [T, R] of the workspace.
  TypedPtr narrow(const Adapter& adapter, ConstRowsView x) const;
  /// Returns its gradient before A, scale B^T dy, [T, R] of the workspace.
  TypedPtr narrow_gradient(const Adapter& adapter, ConstRowsView dy) const;
};

/// Computes weight[out, in] += scale B A; `scratch` holds [R, in].
void merge_adapter(Backend& backend, const Adapter& adapter, float scale,
                   float* weight, float* scratch);

} // namespace troupe::models
