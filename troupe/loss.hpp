// User-defined losses: a pure function of a packed micro-batch and of
// denominators over the whole mini-batch, so that every way of micro-batching
// yields the same gradient.
//
// Shapes: T tokens of the micro-batch (packed), N sequences in it. Entry t of a
// sequence belongs to its token t; entry 0 of logprobs and values is 0.
#pragma once

// Operators (+ - * / > >= < <= == !=) and methods of tensors, and these
// functions of namespace at:
//   abs clamp clamp_max clamp_min exp expm1 full_like isfinite log log1p
//   log_sigmoid logaddexp logical_and logical_not logical_or maximum mean
//   minimum ones_like pow reciprocal relu rsqrt sigmoid sign softplus sqrt
//   square sum tanh where zeros_like
// Every other function of PyTorch is in <ATen/ops/NAME.h>. ATen/Functions.h has
// all of them and takes as long to compile as everything else here.
#ifdef AT_PER_OPERATOR_HEADERS
#include <ATen/TensorOperators.h>
#else
#define AT_PER_OPERATOR_HEADERS
#include <ATen/TensorOperators.h>
#undef AT_PER_OPERATOR_HEADERS
#endif
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "troupe/key.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace models {
struct TrainBatch;
} // namespace models

class TrainBatch {
public:
  TrainBatch(const models::TrainBatch& parts, double denominator)
    : parts_(parts),
      denominator_(denominator) {}

  const at::Tensor& logprobs() const; ///< [T] log p(token t | tokens before t)
  const at::Tensor& values() const;   ///< [T] scalar head: V before token t
  const at::Tensor& scores() const;   ///< [N] scalar head: at the last token
  const at::Tensor& mask() const;     ///< [T] 0/1: the model's own tokens
  /// Returns the sum over the mini-batch, across all micro-batches and ranks,
  /// of the key that train() got as mean_over.
  double denominator() const {
    return denominator_;
  }
  std::int64_t num_sequences() const;
  /// Returns a key that train() reads as [T]; a per-sample value is repeated
  /// for each of its tokens.
  template <class T, Per P>
  const at::Tensor& operator[](Key<T, P> key) const {
    return at(key.name);
  }

private:
  const at::Tensor& at(const char* key) const;
  const models::TrainBatch& parts_;
  double denominator_;
};

struct Loss {
  at::Tensor loss; ///< scalar, already divided by the batch's denominator
  /// Metrics ROLE/NAME: sums over this micro-batch, reported as means.
  std::vector<std::pair<std::string, at::Tensor>> sums = {};
};

} // namespace troupe
