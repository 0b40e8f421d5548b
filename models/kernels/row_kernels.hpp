// Kernels over numbers and rows that know nothing of a model, and the rows of
// an embedding. A part of backend.hpp.
#pragma once

#include "models/kernels/elementwise.hpp"
#include "models/kernels/embed.hpp"
#include "models/kernels/typed_ptr.hpp"
#include "models/kernels/workspace.hpp"

#include <cstdint>
#include <span>

namespace troupe::models {

class RowKernels {
public:
  virtual ~RowKernels() = default;

  virtual void fill(TypedPtr x, std::int64_t count, float value) = 0;
  virtual void copy(ConstTypedPtr from, TypedPtr to, std::int64_t count) = 0;
  virtual void copy_box(const BoxCopy& box, ConstTypedPtr from, TypedPtr to)
    = 0;
  virtual void add(ConstTypedPtr a, ConstTypedPtr b, TypedPtr to,
                   std::int64_t count)
    = 0;
  virtual void scale(TypedPtr x, std::int64_t count, float factor) = 0;

  virtual void gather_rows(const RowList& list, ConstTypedPtr from, TypedPtr to)
    = 0;
  virtual void add_rows(const RowList& list, ConstTypedPtr from, TypedPtr to)
    = 0;
  virtual void scatter_rows(const RowList& list, ConstTypedPtr from,
                            TypedPtr to)
    = 0;
  virtual void row_dots(const WholeRows& shape, ConstTypedPtr a,
                        ConstTypedPtr b, float* dots_R)
    = 0;
  virtual void scale_rows(std::span<const float> weights_R, std::int64_t width,
                          TypedPtr x)
    = 0;
  virtual void add_column_sums(ConstTypedPtr x_TN, std::int64_t rows,
                               std::int64_t width, std::int64_t stride,
                               float* sum_N, Workspace& workspace)
    = 0;
  virtual void embed(const Embedding& from, std::span<const DecodeToken> tokens,
                     TypedPtr to)
    = 0;
};

} // namespace troupe::models
