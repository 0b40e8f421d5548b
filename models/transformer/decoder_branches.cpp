// The branches of a layer during decoding: products split over tp
// ranks, and experts, whose rows the device or the host assigns (declared in
// decoder.hpp).
#include "models/kernels/typed_tensor.hpp"
#include "models/transformer/decoder.hpp"

#include <algorithm>

namespace troupe::models {

TypedPtr Decoder::begin_branch(std::int64_t num_rows,
                               const TensorPeers& peers) {
  const std::int64_t count = num_rows * shape_.hidden_size;
  const bool changes = shape_.changes_branches();
  const TypedPtr to = changes ? branch_RH_.data() : stream_RH_.data();
  if (changes || !peers.first())
    backend_.fill(to, count, 0.0F);
  return to;
}

void Decoder::end_branch(std::int64_t num_rows, const Norm& behind,
                         const TensorPeers& peers) {
  const std::int64_t count = num_rows * shape_.hidden_size;
  if (!shape_.changes_branches())
    return peers.sum(stream_RH_.data(), count, "sum of products");
  peers.sum(branch_RH_.data(), count, "sum of products");
  TypedPtr branch = branch_RH_.data();
  if (behind.defined()) {
    branch = normed_RH_.data();
    backend_.norm(norm_shape(num_rows), branch_RH_.data(), behind.weights(),
                  branch, nullptr);
  }
  if (shape_.multipliers.residual != 1)
    backend_.scale(branch, count,
                   static_cast<float>(shape_.multipliers.residual));
  backend_.add(stream_RH_.data(), branch, stream_RH_.data(), count);
}

void Decoder::add_product(std::int64_t num_rows, const TypedBlock& x,
                          const PreparedWeight& b, const at::Tensor& bias,
                          const Norm& behind, const TensorPeers& peers) {
  end_product(num_rows, x, b, bias, peers, begin_branch(num_rows, peers));
  end_branch(num_rows, behind, peers);
}

void Decoder::end_product(std::int64_t num_rows, const TypedBlock& x,
                          const PreparedWeight& b, const at::Tensor& bias,
                          const TensorPeers& peers, TypedPtr to) {
  const float* bias_data
    = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  backend_.product(
    num_rows, x.data(), b, {to, shape_.hidden_size},
    {.accumulate = true, .bias = peers.first() ? bias_data : nullptr});
}

void Decoder::record_experts(bool records) {
  experts_.is_recorded = records;
}

std::int64_t Decoder::experts_per_row() const {
  return std::ranges::count_if(weights_.layers, &LayerWeights::has_experts)
         * shape_.experts.per_token;
}

std::span<const std::int32_t> Decoder::experts_of(std::int64_t row) const {
  const auto width = static_cast<std::size_t>(experts_per_row());
  return std::span(experts_.chosen_RW)
    .subspan(static_cast<std::size_t>(row) * width, width);
}

void Decoder::record(const Routing& routing, std::int64_t column) {
  const std::int64_t chosen = shape_.experts.per_token;
  const std::int64_t width = experts_per_row();
  const auto rows
    = static_cast<std::int64_t>(routing.chosen_TK.size()) / chosen;
  experts_.chosen_RW.resize(static_cast<std::size_t>(rows * width));
  for (std::int64_t r = 0; r < rows; ++r)
    std::copy_n(routing.chosen_TK.begin() + r * chosen, chosen,
                experts_.chosen_RW.begin() + r * width + column);
}

MoeShape Decoder::moe_shape(std::int64_t num_rows,
                            const MoeWeights& moe) const {
  return {.backend = &backend_,
          .hidden = shape_.hidden_size,
          .router = {num_rows, shape_.experts.count, shape_.experts.per_token,
                     shape_.experts.router},
          .unit = {0, moe.experts.front().up.size(0), shape_.activation,
                   shape_.gated_mlp},
          .operands = weights_.operands,
          .storage = backend_.storage(weights_.operands)};
}

bool Decoder::stays_on_device() const {
  if (shape_.experts.exist() && (experts_.is_recorded || layers_.empty()))
    return false;
  for (std::size_t i = 0; i < layers_.size(); ++i)
    if (weights_.layers[i].has_experts() && !layers_[i].experts.places)
      return false;
  return true;
}

// A step's slots are one piece; those of prompts are pieces of a pass's rows.
void Decoder::dispatched_experts(std::int64_t layer, ConstTypedPtr in,
                                 TypedPtr to) {
  constexpr std::int64_t least_at_once = 4096;
  const std::int64_t num_rows = pass_.num_tokens();
  const Layer& packed = layers_[static_cast<std::size_t>(layer)];
  const MoeWeights& moe = weights_.layers[static_cast<std::size_t>(layer)].moe;
  const MoeShape shape = moe_shape(num_rows, moe);
  ExpertChoice choice = choice_of(shape.router);
  choice.keeps_scores = false; // they are for gradients
  const auto in_block = [&](std::int64_t rows) {
    choice.tokens = rows;
    const std::int64_t at_once = std::max(rows, least_at_once);
    return DeviceRouting::in(
      experts_.routing.reserve(DeviceRouting::floats(choice, at_once)), choice,
      at_once);
  };
  in_block(room_rows_); // which keeps its place
  const DeviceRouting routing = in_block(num_rows);
  float* logits = experts_.logits_RE.reserve(room_rows_ * choice.experts);
  backend_.product(num_rows, in, *packed.experts.router,
                   {logits, choice.experts}, {});
  backend_.dispatch(logits, numbers_of(moe.correction).floats(), routing);
  backend_.experts_forward(experts_at(shape, *packed.experts.places), routing,
                           in, {}, to);
}

void Decoder::experts(std::int64_t layer, ConstTypedPtr in_RH, TypedPtr to) {
  if (layers_[static_cast<std::size_t>(layer)].experts.places
      && !experts_.is_recorded)
    return dispatched_experts(layer, in_RH, to);
  const std::int64_t num_rows = pass_.num_tokens();
  const Layer& packed = layers_[static_cast<std::size_t>(layer)];
  const LayerWeights& w = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t hidden = shape_.hidden_size;
  const std::int64_t width = shape_.experts.width;
  const std::int64_t count = shape_.experts.count;
  MlpShape unit{0, width, shape_.activation, shape_.gated_mlp};
  float* logits = experts_.logits_RE.reserve(num_rows * count);
  const TypedPtr x = experts_.rows_RH.reserve(2 * num_rows * hidden);
  const TypedPtr y = x + num_rows * hidden;
  backend_.product(num_rows, in_RH, *packed.experts.router, {logits, count},
                   {});
  const Routing routing
    = route(backend_,
            {num_rows, count, shape_.experts.per_token, shape_.experts.router},
            logits, w.moe.correction);
  if (experts_.is_recorded)
    record(routing, packed.experts.first_column);
  for (const auto& [index, begin, rows, before] :
       routing.slots_of(w.moe.first_expert, packed.experts.single.size())) {
    moe_gather(backend_, {routing, begin, rows}, hidden, in_RH, x);
    backend_.product(rows, x, *packed.experts.single[index].gate_up,
                     {gate_up_RX_.data(), 2 * width}, {});
    unit.rows = rows;
    backend_.mlp_unit(unit, gate_up_RX_.data(), activation_RI_.data());
    backend_.product(rows, activation_RI_.data(),
                     *packed.experts.single[index].down, {y, hidden}, {});
    moe_scatter(backend_, {routing, begin, rows}, hidden, SlotWeights::applied,
                y, to);
  }
}

} // namespace troupe::models
