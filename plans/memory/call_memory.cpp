#include "plans/memory/call_memory.hpp"

#include "config/base/arithmetic.hpp"
#include "config/base/defaults.hpp"
#include "plans/memory/memory_model.hpp"
#include "plans/memory/pass_memory.hpp"
#include "plans/weights/gather_buffers.hpp"
#include "plans/workflow/context_share.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// models/kernels/kv_cache: tokens of a slot and dims of a value, rounded up.
constexpr std::uint64_t cache_block = 16;

std::uint64_t unsigned_of(std::int64_t number) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
}

/// Memory that one call needs while it runs, on the devices of one stage.
class CallMemory {
public:
  CallMemory(const ModelShape& shape, DType dtype, const Placement& placement,
             const BatchSizes& sizes, std::uint32_t stage)
    : shape_(shape),
      dtype_(dtype),
      types_(stored_types(sizes.engine.storage, dtype)),
      place_(placement),
      sizes_(sizes),
      stage_(stage),
      part_(shape, placement.strategy, stage) {}

  std::uint64_t bytes(CallKind kind) const {
    if (kind == CallKind::generate && sizes_.engine.serves)
      return inference_pass_bytes(part_, checked_tokens(), types_);
    if (kind == CallKind::generate)
      return generate_bytes() + packed_bytes() + gathered_bytes();
    if (kind == CallKind::train)
      return train_bytes();
    return inference_pass_bytes(part_, batch_of(a_chunk(kind)), types_);
  }
  /// Returns at least one response: with less, generation fails. The first
  /// stage has most layers and so the least memory left.
  std::uint64_t slots() const {
    auto under_way = wanted_sequences();
    if (place_.responses > 0)
      under_way = std::min<std::uint64_t>(under_way, place_.responses);
    if (sizes_.kv_cache_bytes == 0 || sizes_.engine.serves)
      return under_way;
    const auto slot = std::max<std::uint64_t>(1, slot_elements(0));
    return std::clamp<std::uint64_t>(
      sizes_.kv_cache_bytes / (slot * size_bytes(types_.cache)), 1, under_way);
  }
  /// Returns the most sequences at once: a cache of whole sequences has no room
  /// for more than its slots.
  std::uint64_t sequences() const {
    const bool has_pages
      = sizes_.engine.storage == StorageRule::gpu && !sizes_.engine.serves;
    return has_pages
             ? std::min(wanted_sequences(), sequences_per_slot * slots())
             : slots();
  }

private:
  /// Returns the sequences at once if memory has room for all of them.
  std::uint64_t wanted_sequences() const {
    // slices of several steps share a batch; few of the old ones go on
    const auto under_way
      = a_chunk(CallKind::generate) * unsigned_of(std::max(1, place_.slices));
    return sizes_.max_sequences > 0
             ? std::min<std::uint64_t>(under_way, sizes_.max_sequences)
             : under_way;
  }
  std::uint64_t longest() const {
    return std::max<std::uint64_t>(1, unsigned_of(sizes_.max_sequence_tokens));
  }
  std::uint64_t new_tokens() const {
    return sizes_.max_new_tokens > 0 ? unsigned_of(sizes_.max_new_tokens)
                                     : longest();
  }
  /// Returns the samples per dp rank (or cp group) of one optimizer step, or
  /// chunk, of `parts`.
  std::uint64_t a_rank(CallKind kind, std::uint64_t parts) const {
    const auto ranks
      = place_.strategy.dp / ranks_of_a_sample(kind, place_.strategy);
    return std::max<std::uint64_t>(
      1, ceil_div(sizes_.samples_per_step, parts * ranks));
  }
  /// Returns the largest micro-batch of these samples: as many whole sequences
  /// as the budget allows (models/engine/row_reader), at least one.
  std::uint64_t in_micro_batch(std::uint64_t samples) const {
    auto budget
      = unsigned_of(place_.micro_batch_tokens > 0 ? place_.micro_batch_tokens
                                                  : sizes_.micro_batch_tokens);
    if (budget == 0)
      budget = unsigned_of(defaults::micro_batch_tokens);
    auto least = unsigned_of(place_.micro_batches);
    if (least == 0 && place_.micro_batch_tokens == 0 && place_.strategy.pp > 1)
      least = std::uint64_t{2} * place_.strategy.pp;
    if (least > 1)
      budget = std::min(budget, ceil_div(samples * longest(), least));
    return std::clamp<std::uint64_t>(budget / longest(), 1, samples);
  }
  PassTokens batch_of(std::uint64_t samples) const {
    const auto sequences = in_micro_batch(samples);
    const ContextShare rank(longest(), place_.strategy.cp);
    return {.tokens = sequences * rank.tokens(),
            .wanted = sequences * rank.last_tokens(new_tokens()),
            .gathered = place_.strategy.cp > 1 ? sequences * longest() : 0,
            .logits_at_once = unsigned_of(sizes_.engine.logits_at_once),
            .grouped_rows_at_once
            = unsigned_of(sizes_.engine.grouped_rows_at_once)};
  }

  /// Returns what our own engine computes of a served generation.
  static PassTokens checked_tokens() {
    const auto tokens = unsigned_of(served_check_tokens);
    return {.tokens = tokens, .wanted = tokens};
  }
  std::uint64_t train_bytes() const {
    const auto samples
      = a_rank(CallKind::train, std::max(1U, sizes_.mini_batches));
    const auto batch = batch_of(samples);
    const auto batches = ceil_div(samples, in_micro_batch(samples));
    const auto ahead = std::uint64_t{place_.strategy.pp} - stage_;
    return train_pass_bytes(
      part_,
      {.batch = batch,
       .in_flight = static_cast<std::uint32_t>(std::min(ahead, batches)),
       .recompute = sizes_.recompute_activations},
      types_);
  }
  std::uint64_t a_chunk(CallKind kind) const {
    return a_rank(kind, unsigned_of(std::max(1, place_.chunks)));
  }
  std::uint64_t slot_elements(std::uint32_t stage) const {
    return cache_slot_elements(shape_, place_.strategy, stage,
                               sizes_.max_sequence_tokens);
  }
  /// A pipeline works on as many parts of the responses as it has stages. The
  /// first pass takes all their prompts, up to its limit.
  std::uint64_t generate_bytes() const {
    const auto cached = slots();
    const auto lanes = std::min<std::uint64_t>(place_.strategy.pp, cached);
    const auto in_lane = ceil_div(sequences(), lanes);
    const auto prompt = std::max<std::uint64_t>(
      1, sizes_.max_new_tokens > 0
           ? longest() - std::min(longest(), new_tokens())
           : longest());
    const auto budget = sizes_.max_batch_tokens > 0
                          ? unsigned_of(sizes_.max_batch_tokens)
                          : unsigned_of(defaults::micro_batch_tokens);
    const DecodePass pass{
      .rows = std::max(in_lane, std::min(budget, in_lane * prompt)),
      .draws = in_lane};
    return cached * slot_elements(stage_) * size_bytes(types_.cache)
           + decode_pass_bytes(part_, pass, types_);
  }
  /// Sharded parameters are gathered as a whole for a generation (models/
  /// gathered_weights).
  std::uint64_t gathered_bytes() const {
    if (!cuts_weights(place_.strategy))
      return 0;
    auto uncut = place_.strategy;
    uncut.zero = Zero::none;
    return stage_bytes(shape_, uncut, {types_.weights}).at(stage_).weights;
  }
  /// Weights with their adapters are a copy too. Rounded planes need none, but
  /// what z3 gathers does.
  std::uint64_t packed_bytes() const {
    const auto planes = weight_planes(sizes_.engine.storage, dtype_);
    const bool packs = sizes_.engine.packs_weights
                       && (!planes.rounded || cuts_weights(place_.strategy));
    return packs || shape_.lora.exists()
             ? part_.matrix_elements()
                 * size_bytes(sizes_.engine.packed_type(dtype_))
             : 0;
  }

  const ModelShape& shape_;
  DType dtype_; ///< of products
  StoredTypes types_;
  const Placement& place_;
  const BatchSizes& sizes_;
  std::uint32_t stage_;
  StackPart part_;
};

} // namespace

BatchSizes sizes_of(const Call& call, BatchSizes sizes) {
  if (call.evaluates)
    sizes.engine.serves = false;
  if (call.rows.ptx == 0)
    return sizes;
  sizes.samples_per_step += call.rows.ptx;
  sizes.max_new_tokens = 0;
  return sizes;
}

bool is_served(const Call& call, const BatchSizes& sizes) {
  return call.kind == CallKind::generate && sizes_of(call, sizes).engine.serves;
}

std::uint64_t cache_slot_elements(const ModelShape& shape,
                                  const Strategy& strategy, std::uint32_t stage,
                                  std::int64_t tokens) {
  const StackPart part(shape, strategy, stage);
  const auto dim = unsigned_of(shape.head_dim);
  const auto heads = dim > 0 ? part.keys / dim : 0;
  return part.layers * heads * round_up(unsigned_of(tokens), cache_block)
         * (dim + round_up(dim, cache_block));
}

std::uint64_t responses_under_way(const ModelShape& shape, DType dtype,
                                  const Placement& placement,
                                  const BatchSizes& sizes) {
  return CallMemory(shape, dtype, placement, sizes, 0).slots();
}

std::uint64_t sequences_under_way(const ModelShape& shape, DType dtype,
                                  const Placement& placement,
                                  const BatchSizes& sizes) {
  return CallMemory(shape, dtype, placement, sizes, 0).sequences();
}

std::uint64_t active_bytes(CallKind kind, const ModelShape& shape, DType dtype,
                           const Placement& placement, const BatchSizes& sizes,
                           std::uint32_t stage) {
  return CallMemory(shape, dtype, placement, sizes, stage).bytes(kind);
}

std::uint64_t active_bytes(CallKind kind, const ModelShape& shape, DType dtype,
                           const Placement& placement,
                           const BatchSizes& sizes) {
  // no stage has more layers and batches in flight than the first; the last one
  // has the head
  return std::max(active_bytes(kind, shape, dtype, placement, sizes, 0),
                  active_bytes(kind, shape, dtype, placement, sizes,
                               placement.strategy.pp - 1));
}

} // namespace troupe::plans
