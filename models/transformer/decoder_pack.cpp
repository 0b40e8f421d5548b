// Weights of generation as decoder.hpp packs them.
#include "models/kernels/typed_tensor.hpp"
#include "models/transformer/decoder.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <iterator>

namespace troupe::models {

/// Prepares weights [out_i, in], stacked along their rows, as one.
Decoder::Prepared Decoder::prepare(const at::Tensor& fused,
                                   std::initializer_list<at::Tensor> parts,
                                   DType operands) {
  std::vector<at::Tensor> found;
  if (fused.defined())
    found.push_back(fused);
  else
    std::ranges::copy_if(parts, std::back_inserter(found),
                         [](const at::Tensor& part) { return part.defined(); });
  return backend_.prepare(found, operands);
}

Decoder::Prepared
Decoder::prepare_adapted(Layer& layer, const at::Tensor& fused,
                         std::initializer_list<at::Tensor> parts,
                         std::initializer_list<Adapter> adapters) {
  if (std::ranges::none_of(adapters, &Adapter::defined))
    return prepare(fused, parts, weights_.operands);
  std::vector<at::Tensor> found;
  std::int64_t count = 0;
  std::int64_t narrow = 0;
  for (const at::Tensor& part : parts)
    count += part.defined() ? part.numel() : 0;
  for (const Adapter& adapter : adapters)
    narrow = std::max(narrow, adapter.defined() ? adapter.a.numel() : 0);
  AlignedFloats merged(backend_.memory());
  float* to = merged.reserve(count + narrow);
  float* scratch = to + count;
  const auto* adapter = adapters.begin();
  for (const at::Tensor& part : parts) {
    const Adapter& own = *adapter++;
    if (!part.defined())
      continue;
    backend_.copy(numbers_of(part), to, part.numel());
    if (own.defined())
      merge_adapter(backend_, own, weights_.adapter_scale, to, scratch);
    found.push_back(at::from_blob(to, part.sizes(), at::kFloat));
    to += part.numel();
  }
  backend_.wait();
  Prepared prepared = backend_.prepare(found, weights_.operands);
  backend_.wait();
  if (prepared->is_view())
    layer.merged.push_back(std::move(merged));
  return prepared;
}

AlignedFloats Decoder::stack_bias(std::initializer_list<at::Tensor> parts) {
  std::int64_t count = 0;
  for (const at::Tensor& part : parts)
    count += part.defined() ? part.numel() : 0;
  AlignedFloats bias(backend_.memory());
  float* to = bias.reserve(count);
  for (const at::Tensor& part : parts)
    if (part.defined()) {
      backend_.copy(part.const_data_ptr<float>(), to, part.numel());
      to += part.numel();
    }
  return bias;
}

void Decoder::pack() {
  capture_.passes.clear();
  layers_.clear();
  const auto pack = [&](const at::Tensor& fused,
                        std::initializer_list<at::Tensor> parts = {}) {
    return prepare(fused, parts, weights_.operands);
  };
  std::int64_t column = 0;
  for (const LayerWeights& w : weights_.layers) {
    Layer& layer = layers_.emplace_back();
    const LayerAdapters& a = w.adapters;
    layer.qkv = prepare_adapted(layer, w.qkv, {w.q, w.k, w.v}, {a.q, a.k, a.v});
    layer.qkv_bias = stack_bias({w.q_bias, w.k_bias, w.v_bias});
    layer.o = prepare_adapted(layer, {}, {w.o}, {a.o});
    if (w.has_experts()) {
      layer.first_expert_column = column;
      column += shape_.experts.per_token;
      layer.router = prepare(w.moe.router, {}, DType::f32);
      for (const ExpertWeights& e : w.moe.experts)
        layer.experts.push_back(
          {pack(e.gate_up, {e.gate, e.up}), pack(e.down)});
    }
    if (!w.has_mlp())
      continue;
    layer.gate_up
      = prepare_adapted(layer, w.gate_up, {w.gate, w.up}, {a.gate, a.up});
    layer.gate_up_bias = stack_bias({w.gate_bias, w.up_bias});
    layer.down = prepare_adapted(layer, {}, {w.down}, {a.down});
  }
  if (weights_.head.defined())
    head_ = pack(weights_.head);
}

} // namespace troupe::models
