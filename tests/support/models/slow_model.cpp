#include "slow_model.hpp"

#include "models/hf/safetensors.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

namespace troupe::testing {

SlowModel::SlowModel(const std::filesystem::path& folder,
                     const ModelShape& shape, at::ScalarType type)
  : shape_(shape),
    type_(type) {
  const auto stored = models::StoredWeights::open(folder);
  for (const auto& parameter : parameters(shape)) {
    const auto& tensor = stored.at(parameter.name);
    at::Tensor floats = at::empty(tensor.shape, at::kFloat);
    tensor.copy_to(DType::f32, {static_cast<std::byte*>(floats.data_ptr()),
                                static_cast<std::size_t>(floats.nbytes())});
    weights_[parameter.name]
      = floats.to(type, false, /*copy=*/true).set_requires_grad(true);
    first_[parameter.name] = at::zeros(tensor.shape, type);
    second_[parameter.name] = at::zeros(tensor.shape, type);
  }
}

at::Tensor SlowModel::project(const std::string& name,
                              const at::Tensor& x_LH) const {
  return at::matmul(x_LH, weights_.at(name + ".weight").t());
}

at::Tensor SlowModel::norm(const std::string& name,
                           const at::Tensor& x_LH) const {
  const auto square = (x_LH * x_LH).mean(-1, /*keepdim=*/true);
  return x_LH * at::rsqrt(square + shape_.norm_eps)
         * weights_.at(name + ".weight");
}

at::Tensor SlowModel::rotate(const at::Tensor& x_hLd) const {
  const auto d = shape_.head_dim;
  const auto pair = at::arange(d / 2, at::kDouble);
  const double slower
    = shape_.rope.scaling == RopeScaling::linear ? shape_.rope.factor : 1;
  const auto frequency
    = at::pow(shape_.rope.theta, pair * (-2.0 / double(d))) / slower;
  const auto angle_Ld = at::outer(at::arange(x_hLd.size(1), at::kDouble),
                                  at::cat({frequency, frequency}));
  const auto turned
    = at::cat({-x_hLd.slice(-1, d / 2), x_hLd.slice(-1, 0, d / 2)}, -1);
  return x_hLd * at::cos(angle_Ld).to(type_)
         + turned * at::sin(angle_Ld).to(type_);
}

at::Tensor SlowModel::attention(const std::string& layer,
                                const at::Tensor& x_LH) const {
  const auto length = x_LH.size(0);
  const auto heads = [&](const char* name, std::int64_t count) {
    return project(layer + ".self_attn." + name, x_LH)
      .view({length, count, shape_.head_dim})
      .transpose(0, 1);
  };
  const auto repeats = shape_.num_heads / shape_.num_kv_heads;
  const auto q = rotate(heads("q_proj", shape_.num_heads));
  const auto k = rotate(heads("k_proj", shape_.num_kv_heads))
                   .repeat_interleave(repeats, 0);
  const auto v
    = heads("v_proj", shape_.num_kv_heads).repeat_interleave(repeats, 0);
  const auto later = at::ones({length, length}, at::kBool).triu(1);
  const auto scores
    = (at::matmul(q, k.transpose(1, 2)) / std::sqrt(double(shape_.head_dim)))
        .masked_fill(later, -INFINITY);
  const auto mixed = at::matmul(at::softmax(scores, -1), v);
  return project(layer + ".self_attn.o_proj",
                 mixed.transpose(0, 1).reshape(
                   {length, shape_.num_heads * shape_.head_dim}));
}

at::Tensor SlowModel::hidden(std::span<const std::int32_t> ids) const {
  const auto index
    = at::tensor(at::ArrayRef<std::int32_t>(ids.data(), ids.size()), at::kInt);
  auto x_LH = weights_.at("model.embed_tokens.weight").index_select(0, index);
  for (std::int64_t i = 0; i < shape_.num_layers; ++i) {
    const auto layer = "model.layers." + std::to_string(i);
    x_LH = x_LH + attention(layer, norm(layer + ".input_layernorm", x_LH));
    const auto y = norm(layer + ".post_attention_layernorm", x_LH);
    x_LH = x_LH
           + project(layer + ".mlp.down_proj",
                     at::silu(project(layer + ".mlp.gate_proj", y))
                       * project(layer + ".mlp.up_proj", y));
  }
  return norm("model.norm", x_LH);
}

at::Tensor SlowModel::logprobs(std::span<const std::int32_t> ids) const {
  const auto all
    = at::log_softmax(project("lm_head", hidden(ids).slice(0, 0, -1)), -1);
  const auto next = at::tensor(
    at::ArrayRef<std::int32_t>(ids.data() + 1, ids.size() - 1), at::kInt);
  return all.gather(1, next.to(at::kLong).unsqueeze(1)).squeeze(1);
}

at::Tensor SlowModel::values(std::span<const std::int32_t> ids) const {
  return project("score", hidden(ids).slice(0, 0, -1)).squeeze(1);
}

double SlowModel::step(const OptimizerSettings& optimizer) {
  const c10::NoGradGuard no_gradients;
  double square = 0;
  for (const auto& [name, weight] : weights_)
    square
      += (weight.grad() * weight.grad()).sum().to(at::kDouble).item<double>();
  const double norm = std::sqrt(square);
  const double scale
    = optimizer.clip > 0 ? std::min(1.0, optimizer.clip / (norm + 1e-6)) : 1.0;
  ++steps_;
  const auto [beta1, beta2] = optimizer.betas;
  for (auto& [name, weight] : weights_) {
    const auto gradient = weight.grad() * scale;
    auto& m = first_[name];
    auto& v = second_[name];
    m = m * beta1 + gradient * (1 - beta1);
    v = v * beta2 + gradient * gradient * (1 - beta2);
    if (weight.dim() > 1)
      weight.mul_(1 - optimizer.lr * optimizer.weight_decay);
    const auto root
      = at::sqrt(v / (1 - std::pow(beta2, steps_))) + optimizer.eps;
    weight.sub_(m / (1 - std::pow(beta1, steps_)) / root * optimizer.lr);
    weight.mutable_grad() = at::Tensor();
  }
  return norm;
}

} // namespace troupe::testing
