// The slow reference of a whole training step: a LLaMA in plain tensor
// operations with libtorch's own gradients, one sequence at a time, in any
// floating-point type. In double it is what the drift of fp32 runs is measured
// from (I1 a).
#pragma once

#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace troupe::testing {

class SlowModel {
public:
  /// Reads the tensors of an HF folder.
  SlowModel(const std::filesystem::path& folder, const ModelShape& shape,
            at::ScalarType type);

  /// Returns the log-probability of each token given those before it, [L-1]:
  /// entry i is of token i+1.
  at::Tensor logprobs(std::span<const std::int32_t> ids) const;
  /// Returns the scalar head's values before each token but the first, [L-1].
  at::Tensor values(std::span<const std::int32_t> ids) const;

  /// Clips the gradients that `backward` left, makes one step of AdamW and
  /// returns the norm before clipping.
  double step(const OptimizerSettings& optimizer);

  const std::map<std::string, at::Tensor>& weights() const {
    return weights_;
  }

private:
  at::Tensor hidden(std::span<const std::int32_t> ids) const; ///< [L, H]
  at::Tensor attention(const std::string& layer, const at::Tensor& x_LH) const;
  at::Tensor project(const std::string& name, const at::Tensor& x_LH) const;
  at::Tensor norm(const std::string& name, const at::Tensor& x_LH) const;
  at::Tensor rotate(const at::Tensor& x_hLd) const; ///< by position

  ModelShape shape_;
  at::ScalarType type_;
  std::map<std::string, at::Tensor> weights_;
  std::map<std::string, at::Tensor> first_, second_; ///< Adam's moments
  std::int64_t steps_ = 0;
};

} // namespace troupe::testing
