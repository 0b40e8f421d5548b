#include "plans/memory/pass_memory.hpp"

#include "config/base/arithmetic.hpp"
#include "plans/weights/stage_layers.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// models/transformer/vocab_logprobs: logits of all rows are kept up to this
/// many floats, else computed in chunks.
constexpr std::uint64_t kept_logits = std::uint64_t{1} << 26;
constexpr std::uint64_t chunk_rows_grain = 12;
constexpr std::uint64_t row_statistics = 4; ///< per tensor peer
/// models/kernels/norm: rows whose gradients are summed separately.
constexpr std::uint64_t norm_chunk_rows = 64;

std::uint64_t count_of(std::int64_t number) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
}

/// Bytes of the buffers of one batch; widths are in numbers per token.
class PassBytes {
public:
  PassBytes(const StackPart& part, PassTokens batch, const StoredTypes& types)
    : p_(part),
      batch_(batch),
      activation_(size_bytes(types.activations)),
      statistic_(size_bytes(types.statistics)),
      rows_(part.splits_tokens ? ceil_div(batch.tokens, part.tp)
                               : batch.tokens) {}

  /// Returns the bytes independent of what layers keep: result, stream,
  /// scratch.
  std::uint64_t around_layers() const {
    return gathered() + stream() + wide() + stream() + per_token(p_.widest());
  }
  /// Returns what layers keep, besides their inputs.
  std::uint64_t layers() const {
    return p_.layers * attention() + p_.dense_layers() * per_token(dense_room())
           + p_.mlps.expert_layers * per_token(shared_room() + expert_room());
  }
  /// Returns the room for any one layer.
  std::uint64_t layer() const {
    const auto dense = p_.dense_layers() > 0 ? dense_room() : 0;
    const auto experts = p_.mlps.expert_layers > 0 ? shared_room() : 0;
    return attention()
           + per_token(std::max(dense, experts)
                       + (p_.mlps.expert_layers > 0 ? expert_room() : 0));
  }
  /// Returns what a layer keeps besides its MLP's and experts' products.
  std::uint64_t attention() const {
    auto bytes = statistics(2 * rows_ + tokens() * p_.heads)
                 + per_token(p_.qkv() + p_.queries) + stream();
    if (p_.whole.qk_norm != QkNormScope::none)
      bytes += per_token(p_.queries + p_.keys);
    if (p_.whole.norms_outputs())
      bytes += 2 * stream() + statistics(2 * rows_);
    return bytes;
  }
  /// Returns the bytes of a layer's input.
  std::uint64_t stream() const {
    return rows_ * p_.hidden * activation_;
  }
  /// Returns the scratch bytes while one layer runs.
  std::uint64_t forward_rest() const {
    if (p_.mlps.expert_layers == 0)
      return std::max(head_sums(2), gathered_keys(2));
    return std::max(
      wide() + expert_rows() * (2 * p_.hidden + p_.mlps.expert) * activation_
        + statistics(tokens() * num_experts()),
      gathered_keys(2));
  }
  /// Returns the bytes that the head keeps for its gradient.
  std::uint64_t head() const {
    if (!p_.last_stage)
      return 0;
    if (p_.whole.scalar_head)
      return statistics(tokens());
    return statistics(3 * batch_.wanted
                      + (keeps_logits() ? batch_.wanted * p_.vocab : 0));
  }
  /// Returns those of the numbers that a pass without gradients finds.
  std::uint64_t found() const {
    return p_.whole.scalar_head ? head() : statistics(3 * batch_.wanted);
  }
  std::uint64_t head_rest(bool keeps) const {
    if (!p_.last_stage || p_.whole.scalar_head)
      return 0;
    const auto peers = p_.tp > 1 ? p_.tp + 1 : 1;
    return loss_rows()
           * (p_.hidden * activation_
              + statistics(row_statistics * peers
                           + (keeps && keeps_logits() ? 0 : p_.vocab)));
  }
  /// Returns the bytes from the loss to the stack, on the last stage.
  std::uint64_t output_gradient() const {
    if (!p_.last_stage)
      return 0;
    return gathered()
           + statistics(p_.whole.scalar_head ? tokens() : batch_.wanted);
  }
  std::uint64_t head_backward_rest() const {
    if (!p_.last_stage || p_.whole.scalar_head)
      return 0;
    return loss_rows()
           * (2 * p_.hidden * activation_
              + statistics(keeps_logits() ? 0 : p_.vocab));
  }
  std::uint64_t backward(bool recompute) const {
    const auto own_norm = p_.splits_tokens || !p_.last_stage ? stream() : 0;
    const auto branch = (p_.whole.changes_branches() ? stream() : 0)
                        + (p_.whole.parallel_residual ? stream() : 0);
    return stream() + per_token(p_.widest()) + own_norm + stream() + 2 * wide()
           + per_token(p_.queries + p_.qkv()) + statistics(2 * unused())
           + branch
           + std::max({norm_rest(), expert_backward_rest(), again(recompute),
                       heads_rest(), gathered_keys(3)});
  }

private:
  std::uint64_t tokens() const {
    return batch_.tokens;
  }
  /// Returns the bytes of a buffer of activations.
  std::uint64_t per_token(std::uint64_t width) const {
    return tokens() * width * activation_;
  }
  std::uint64_t statistics(std::uint64_t count) const {
    return count * statistic_;
  }
  /// Returns the bytes of buffers for the keys and values of all ranks of a cp
  /// group: 2 forward, as they are gathered and as attention reads them, 3
  /// backward, for gradients too.
  std::uint64_t gathered_keys(std::uint64_t buffers) const {
    return buffers * batch_.gathered * 2 * p_.keys * activation_;
  }
  std::uint64_t gathered() const {
    return p_.splits_tokens ? p_.tp * stream() : stream();
  }
  std::uint64_t wide() const {
    return p_.splits_tokens ? gathered() : 0;
  }
  std::uint64_t dense_room() const {
    return p_.gate_up(p_.mlps.dense);
  }
  std::uint64_t shared_room() const {
    return p_.gate_up(p_.mlps.shared);
  }
  std::uint64_t expert_room() const {
    return chosen() * p_.gate_up(p_.mlps.chosen);
  }
  std::uint64_t chosen() const {
    return count_of(p_.whole.experts.per_token);
  }
  /// Returns the rows of experts that are gathered at a time: at least those
  /// of one expert, which may have all tokens.
  std::uint64_t expert_rows() const {
    return std::clamp(batch_.grouped_rows_at_once, tokens(),
                      tokens() * std::max<std::uint64_t>(chosen(), 1));
  }
  std::uint64_t num_experts() const {
    return count_of(p_.whole.experts.count);
  }
  bool keeps_logits() const {
    return batch_.wanted * p_.vocab <= kept_logits;
  }
  /// Returns the rows of logits that are computed at a time.
  std::uint64_t loss_rows() const {
    const auto fitting = batch_.logits_at_once
                         / std::max<std::uint64_t>(p_.vocab, 1)
                         / chunk_rows_grain * chunk_rows_grain;
    return std::min(batch_.wanted, std::max(chunk_rows_grain, fitting));
  }
  std::uint64_t norm_rest() const {
    const auto planes = p_.whole.norm == NormKind::layer ? 2 : 1;
    return statistics(planes * ceil_div(rows_, norm_chunk_rows) * p_.hidden);
  }
  std::uint64_t unused() const {
    return p_.whole.qk_norm == QkNormScope::all_heads
             ? std::max(p_.hidden, p_.queries)
             : p_.hidden;
  }
  /// Returns the bytes of `count` sums over the heads of each token.
  std::uint64_t head_sums(std::uint64_t count) const {
    return p_.whole.qk_norm == QkNormScope::all_heads
             ? statistics(count * tokens())
             : 0;
  }
  /// Returns the bytes of sums and partial gradients of a norm of all heads.
  std::uint64_t heads_rest() const {
    if (p_.whole.qk_norm != QkNormScope::all_heads)
      return 0;
    return head_sums(4)
           + statistics(ceil_div(tokens(), norm_chunk_rows) * p_.queries);
  }
  std::uint64_t expert_backward_rest() const {
    if (p_.mlps.expert_layers == 0)
      return 0;
    return expert_rows() * (3 * p_.hidden + 2 * p_.mlps.expert) * activation_
           + per_token(p_.hidden)
           + statistics(tokens() * (num_experts() + chosen()));
  }
  std::uint64_t again(bool recompute) const {
    const bool finishes = p_.mlps.expert_layers > 0 || p_.whole.norms_outputs();
    return recompute && finishes ? stream() + forward_rest() : 0;
  }

  const StackPart& p_;
  PassTokens batch_;
  std::uint64_t activation_; ///< bytes of a number
  std::uint64_t statistic_;
  std::uint64_t rows_; ///< of the stream on this device
};

} // namespace

StackPart::StackPart(const ModelShape& shape, const Strategy& strategy,
                     std::uint32_t stage)
  : whole(shape),
    tp(strategy.tp),
    splits_tokens(strategy.sequence_parallel && strategy.tp > 1),
    first_stage(stage == 0),
    last_stage(stage + 1 == strategy.pp),
    hidden(count_of(shape.hidden_size)),
    heads(ceil_div(count_of(shape.num_heads), strategy.tp)),
    queries(heads * count_of(shape.head_dim)),
    keys(std::max<std::uint64_t>(1, count_of(shape.num_kv_heads) / tp)
         * count_of(shape.head_dim)),
    mlps{ceil_div(count_of(shape.intermediate_size), strategy.tp),
         ceil_div(count_of(shape.experts.shared_width), strategy.tp),
         ceil_div(count_of(shape.experts.width),
                  strategy.ep > 1 ? 1 : strategy.tp),
         ceil_div(count_of(shape.experts.width), strategy.tp),
         count_of(shape.experts.count) / strategy.ep},
    vocab(ceil_div(count_of(shape.vocab_size), strategy.tp)) {
  layers = count_of(shape.num_layers);
  std::uint64_t first = 0;
  if (strategy.pp > 1) {
    const StageLayers stages(static_cast<std::uint32_t>(layers), strategy.pp,
                             unit_costs(shape));
    for (std::uint32_t before = 0; before < stage; ++before)
      first += stages.count(before);
    layers = stages.count(stage);
  }
  for (auto layer = first; layer < first + layers; ++layer)
    mlps.expert_layers
      += shape.experts.in_layer(static_cast<std::int64_t>(layer)) ? 1 : 0;
}

std::uint64_t StackPart::widest() const {
  return std::max(dense_layers() > 0 ? mlps.dense : 0,
                  mlps.expert_layers > 0 ? mlps.shared : 0);
}

std::uint64_t StackPart::matrix_elements() const {
  const auto mlp = [&](std::uint64_t width) { return gate_up(width) + width; };
  const auto with_experts = mlp(mlps.shared) + mlps.experts * mlp(mlps.expert)
                            + count_of(whole.experts.count);
  return hidden
         * (layers * (qkv() + queries) + dense_layers() * mlp(mlps.dense)
            + mlps.expert_layers * with_experts + (last_stage ? vocab : 0));
}

std::uint64_t inference_pass_bytes(const StackPart& part, PassTokens batch,
                                   const StoredTypes& types) {
  const PassBytes bytes(part, batch, types);
  const auto head = bytes.head_rest(/*keeps=*/false) + bytes.found();
  const auto rest = std::max(bytes.forward_rest(), part.last_stage ? head : 0);
  return bytes.around_layers() + bytes.layer() + rest;
}

std::uint64_t train_pass_bytes(const StackPart& part, const TrainPass& pass,
                               const StoredTypes& types) {
  const PassBytes bytes(part, pass.batch, types);
  const auto layers = pass.recompute
                        ? bytes.layer() + part.layers * bytes.stream()
                        : bytes.layers() + part.layers * bytes.stream();
  const auto kept = bytes.around_layers() + layers + bytes.head();
  const auto forward
    = std::max(bytes.forward_rest(), bytes.head_rest(/*keeps=*/true));
  const auto backward
    = bytes.output_gradient()
      + std::max(bytes.head_backward_rest(), bytes.backward(pass.recompute));
  return pass.in_flight * kept + std::max(forward, backward);
}

std::uint64_t decode_pass_bytes(const StackPart& part, DecodePass pass,
                                const StoredTypes& types) {
  const auto width = std::max(
    part.widest(), part.mlps.expert_layers > 0 ? part.mlps.expert : 0);
  auto row = 2 * part.hidden + part.qkv() + part.queries + 3 * width;
  std::uint64_t sums = 0;
  if (part.whole.changes_branches())
    row += part.hidden;
  if (part.whole.parallel_residual)
    row += part.hidden;
  if (part.whole.qk_norm == QkNormScope::all_heads)
    sums += 2;
  if (part.mlps.expert_layers > 0) {
    row += 2 * part.hidden;
    sums += count_of(part.whole.experts.count);
  }
  std::uint64_t drawn = 0, logits = 0;
  if (part.last_stage) {
    const auto peers = part.tp > 1 ? part.tp + 1 : 0;
    drawn = part.hidden;
    logits = count_of(part.whole.vocab_size) + part.vocab * peers;
  }
  return (pass.rows * row + pass.draws * drawn) * size_bytes(types.activations)
         + (pass.rows * sums + pass.draws * logits)
             * size_bytes(types.statistics);
}

} // namespace troupe::plans
