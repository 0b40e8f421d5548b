// The model whose operations are counted: small, of zeros, over counted memory,
// on ATen's CPU device equipped like a GPU.
#pragma once

#include "models/gpu/aten_backend.hpp"
#include "models/parallel/parameters.hpp"
#include "models/transformer/weights.hpp"
#include "plans/cost/gpu_counts.hpp"

#include <ATen/ops/arange.h>

#include "tests/support/models/aten_counter.hpp"
#include "tests/support/models/counted_flash.hpp"

namespace troupe::testing {

/// Returns a Llama with grouped heads; sizes are those of 8B divided by 16,
/// but for the number of heads.
inline ModelShape counted_shape(std::int64_t layers) {
  ModelShape shape;
  shape.family = "llama";
  shape.vocab_size = 8000;
  shape.hidden_size = 256;
  shape.num_layers = layers;
  shape.num_heads = 8;
  shape.num_kv_heads = 2;
  shape.head_dim = 32;
  shape.intermediate_size = 896;
  shape.max_positions = 2048;
  shape.norm_eps = 1e-5;
  return shape;
}

/// Returns the same with experts, of which those of a token are as wide as the
/// MLP together: Mixtral's 8 with 2 each, as wide as 30B-A3B's.
inline ModelShape counted_experts(std::int64_t layers,
                                  std::int64_t count
                                  = plans::num_counted_experts) {
  ModelShape shape = counted_shape(layers);
  shape.experts.count = count;
  shape.experts.per_token = 2;
  shape.experts.width = shape.intermediate_size / 2;
  return shape;
}

/// A model of zeros with its gradients.
struct CountedModel {
  ModelShape shape;
  models::Parameters parameters;
  models::Weights weights;
  models::Weights grads;
  CountedFlash flash;
  models::AtenBackend backend;

  explicit CountedModel(const ModelShape& of, bool groups = true)
    : shape(of),
      parameters(troupe::parameters(shape), true, &counted_memory(),
                 DType::bf16),
      weights(models::weights_of(shape, parameters, models::Plane::weight)),
      grads(models::weights_of(shape, parameters, models::Plane::grad)),
      backend(at::kCPU, {.memory = &counted_memory(),
                         .flash = &flash,
                         .bf16_storage = DType::bf16,
                         .own_kernels = true,
                         .grouped_products = groups}) {
    weights.operands = DType::bf16;
    parameters.refresh_rounded(backend);
  }
};

/// Gives tokens and routers numbers under which tokens go to all experts.
inline void spread_tokens(CountedModel& model) {
  const auto waves = [](const at::Tensor& x, double step) {
    x.copy_(at::arange(x.numel(), at::kFloat).mul_(step).sin_().view_as(x));
  };
  waves(model.weights.embedding, 1.7);
  double step = 0.3;
  for (models::LayerWeights& w : model.weights.layers) {
    w.post_norm.weight.fill_(1);
    waves(w.moe.router, step += 0.4);
  }
}

} // namespace troupe::testing
