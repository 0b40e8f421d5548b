// Weights of generation as decoder.hpp packs them.
#include "models/kernels/typed_tensor.hpp"
#include "models/transformer/decoder.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <iterator>

namespace troupe::models {

void Decoder::prepare(Prepared& old, const at::Tensor& fused,
                      std::initializer_list<at::Tensor> parts, DType operands) {
  std::vector<at::Tensor> found;
  if (fused.defined())
    found.push_back(fused);
  else
    std::ranges::copy_if(parts, std::back_inserter(found),
                         [](const at::Tensor& part) { return part.defined(); });
  old = backend_.prepare(found, operands, std::move(old));
}

void Decoder::prepare_adapted(Layer& layer, Prepared& old,
                              const at::Tensor& fused,
                              std::initializer_list<at::Tensor> parts,
                              std::initializer_list<Adapter> adapters) {
  if (std::ranges::none_of(adapters, &Adapter::defined))
    return prepare(old, fused, parts, weights_.operands);
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
  old = backend_.prepare(found, weights_.operands, std::move(old));
  backend_.wait();
  if (old->is_view())
    layer.merged.push_back(std::move(merged));
}

void Decoder::stack_bias(AlignedFloats& old,
                         std::initializer_list<at::Tensor> parts) {
  std::int64_t count = 0;
  for (const at::Tensor& part : parts)
    count += part.defined() ? part.numel() : 0;
  float* to = old.reserve(count);
  for (const at::Tensor& part : parts)
    if (part.defined()) {
      backend_.copy(part.const_data_ptr<float>(), to, part.numel());
      to += part.numel();
    }
}

void Decoder::pack() {
  while (layers_.size() < weights_.layers.size()) {
    Layer& layer = layers_.emplace_back();
    layer.qkv_bias = AlignedFloats(backend_.memory());
    layer.gate_up_bias = AlignedFloats(backend_.memory());
  }
  std::int64_t column = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerWeights& w = weights_.layers[i];
    Layer& layer = layers_[i];
    const LayerAdapters& a = w.adapters;
    layer.merged.clear();
    prepare_adapted(layer, layer.qkv, w.qkv, {w.q, w.k, w.v}, {a.q, a.k, a.v});
    stack_bias(layer.qkv_bias, {w.q_bias, w.k_bias, w.v_bias});
    prepare_adapted(layer, layer.o, {}, {w.o}, {a.o});
    if (w.has_experts()) {
      layer.experts.first_column = column;
      column += shape_.experts.per_token;
      pack_experts(layer, w.moe);
    }
    if (!w.has_mlp())
      continue;
    prepare_adapted(layer, layer.gate_up, w.gate_up, {w.gate, w.up},
                    {a.gate, a.up});
    stack_bias(layer.gate_up_bias, {w.gate_bias, w.up_bias});
    prepare_adapted(layer, layer.down, {}, {w.down}, {a.down});
  }
  if (weights_.head.defined())
    prepare(head_, weights_.head, {}, weights_.operands);
}

void Decoder::pack_experts(Layer& layer, const MoeWeights& moe) {
  prepare(layer.experts.router, moe.router, {}, DType::f32);
  layer.experts.places.reset();
  if (dispatches(moe_shape(1, moe), moe))
    layer.experts.places.emplace(moe.experts);
  layer.experts.single.resize(moe.experts.size());
  for (std::size_t e = 0; e < moe.experts.size(); ++e) {
    const ExpertWeights& from = moe.experts[e];
    PackedExpert& packed = layer.experts.single[e];
    prepare(packed.gate_up, from.gate_up, {from.gate, from.up},
            weights_.operands);
    prepare(packed.down, from.down, {}, weights_.operands);
  }
}

} // namespace troupe::models
