// Engine::infer: log-probabilities, values and scores of finished sequences,
// without gradients. A token's numbers do not depend on the split of samples
// into micro-batches (gemm.hpp).
#include "config/base/error.hpp"
#include "config/trace/trace.hpp"
#include "models/engine/engine.hpp"
#include "models/engine/engine_impl.hpp"
#include "models/engine/kept_reader.hpp"
#include "models/engine/replay_reader.hpp"
#include "models/engine/row_reader.hpp"
#include "models/parallel/pipeline.hpp"
#include "models/transformer/context_sequences.hpp"
#include "net/base/rows.hpp"

#include <algorithm>
#include <optional>

namespace troupe::models {

namespace {

std::vector<std::uint32_t>
infer_lengths(const ColumnReader& ids, std::size_t count, std::uint32_t more) {
  std::vector<std::uint32_t> lengths(count);
  for (std::size_t i = 0; i < count; ++i)
    lengths[i] = static_cast<std::uint32_t>(ids.length(i)) + more;
  return lengths;
}

// Returns a column of zeros.
net::Column infer_column(const std::string& key,
                         std::vector<std::uint32_t> lengths) {
  net::Column column = net::make_column(key, DType::f32, std::move(lengths));
  std::ranges::fill(column.as<float>(), 0.0F);
  return column;
}

ColumnReaders infer_masks(const net::Rows& rows, const std::string& prefix) {
  ColumnReaders masks;
  if (rows.has(prefix + "loss_mask"))
    masks.emplace_back(rows.at(prefix + "loss_mask"));
  return masks;
}

// One micro-batch of rows [first, last).
struct InferBatch {
  PackedSequences sequences;
  std::vector<std::size_t> rows;
  ConstTypedPtr hidden_TH;
};

// The sequences of an inference.
struct InferInput {
  const ColumnReader& ids;
  const ColumnReaders& masks;
  std::size_t count = 0;
  const ReplayReader* replay = nullptr; // null: routers choose
};

// Runs the stack over the sequences and passes each micro-batch to `consume`.
template <class Consume>
void infer_sequences(Engine::Impl& impl, const InferInput& input,
                     const RunContext& context, const InferOptions& options,
                     const Consume& consume) {
  std::vector<std::int64_t> lengths(input.count);
  for (std::size_t i = 0; i < input.count; ++i)
    lengths[i] = input.ids.length(i);
  static const trace::Name name = trace::name("forward");
  std::size_t first = 0;
  int parts = options.micro_batches;
  if (parts == 0 && options.micro_batch_tokens == 0)
    parts = default_micro_batches(context.groups.stages());
  for (const std::size_t last :
       micro_batch_ends(lengths, options.micro_batch_tokens, parts)) {
    InferBatch batch;
    std::vector<std::span<const std::int32_t>> sequences;
    for (std::size_t i = first; i < last; ++i) {
      batch.rows.push_back(i);
      sequences.push_back(input.ids.ids(i));
    }
    first = last;
    batch.sequences
      = pack_own(context.groups.cp.get(), sequences,
                 prompt_lengths(input.masks, batch.rows, sequences));
    if (input.replay != nullptr)
      input.replay->read(batch.rows, batch.sequences);
    const trace::Span span(
      context.track, name, context.step.value,
      static_cast<std::uint64_t>(batch.sequences.num_tokens()));
    impl.workspace_of(0).reset();
    impl.sync->another_pass(/*own=*/true);
    batch.hidden_TH = impl.run_forward(batch.sequences.tokens, context,
                                       impl.workspace_of(0), nullptr);
    if (batch.hidden_TH) // on the last stage only
      consume(batch);
  }
}

/// Computes log-probabilities; `prefix`: "", or "chosen_" and "rejected_" of
/// pairs.
void infer_logprobs(Engine::Impl& impl, const net::Rows& rows,
                    const std::string& prefix, const RunContext& context,
                    const InferOptions& options, net::Rows& out) {
  const VocabularyHead head
    = impl.vocabulary_head(options.temperature, context);
  const ColumnReader ids(
    rows.at(prefix.empty() ? "sequence_ids" : prefix + "ids"));
  const ColumnReaders masks = infer_masks(rows, prefix);
  std::optional<KeptReader> kept;
  if (prefix.empty() && KeptReader::in(rows))
    kept.emplace(rows);
  std::optional<ReplayReader> replay;
  if (prefix.empty() && ReplayReader::in(rows))
    replay.emplace(rows, impl.part.whole);
  const auto lengths = infer_lengths(ids, rows.num_samples(), 0);
  net::Column logprobs = infer_column(prefix + "logprobs", lengths);
  net::Column entropy = infer_column(prefix + "entropy", lengths);
  const std::vector<std::uint64_t> offsets = logprobs.offsets();
  const auto consume = [&](const InferBatch& batch) {
    const std::vector<float> mask_L
      = token_mask(masks, batch.rows, batch.sequences.cu_seqlens);
    WantedTokens wanted = wanted_tokens(batch.sequences, mask_L);
    if (kept)
      kept->read(batch.rows, impl.shape.vocab_size, wanted);
    const TokenStatistics found = token_statistics(
      head, batch.hidden_TH, wanted, impl.workspace_of(0), false);
    const auto logprobs_R = impl.backend.read(found.logprobs_R, wanted.size());
    const auto entropy_R = impl.backend.read(found.entropy_R, wanted.size());
    // Samples are consecutive: token t of the batch is element offset + t.
    const auto shift = static_cast<std::int64_t>(offsets[batch.rows.front()]);
    for (std::int64_t r = 0; r < wanted.size(); ++r) {
      const auto t = static_cast<std::size_t>(
        shift + wanted.entries_R[static_cast<std::size_t>(r)]);
      logprobs.as<float>()[t] = logprobs_R.floats()[r];
      entropy.as<float>()[t] = entropy_R.floats()[r];
    }
  };
  infer_sequences(impl,
                  {ids, masks, rows.num_samples(), replay ? &*replay : nullptr},
                  context, options, consume);
  out.add(std::move(logprobs));
  if (options.entropy)
    out.add(std::move(entropy));
}

/// Computes the K likeliest tokens at each unmasked entry.
void infer_top_logprobs(Engine::Impl& impl, const net::Rows& rows,
                        const RunContext& context, const InferOptions& options,
                        net::Rows& out) {
  const VocabularyHead head
    = impl.vocabulary_head(options.temperature, context);
  const std::int64_t k = std::min(options.top_k, impl.shape.vocab_size);
  const ColumnReader ids(rows.at("sequence_ids"));
  const ColumnReaders masks = infer_masks(rows, "");
  auto lengths = infer_lengths(ids, rows.num_samples(), 0);
  for (std::uint32_t& length : lengths)
    length *= static_cast<std::uint32_t>(k);
  net::Column logprobs = infer_column("top_logprobs", lengths);
  net::Column tokens
    = net::make_column("top_ids", DType::i32, std::move(lengths));
  std::ranges::fill(tokens.as<std::int32_t>(), 0);
  const std::vector<std::uint64_t> offsets = logprobs.offsets();
  const auto consume = [&](const InferBatch& batch) {
    const std::vector<float> mask_L
      = token_mask(masks, batch.rows, batch.sequences.cu_seqlens);
    const WantedTokens wanted = wanted_tokens(batch.sequences, mask_L);
    const TopTokens found
      = top_tokens(head, batch.hidden_TH, wanted, k, impl.workspace_of(0));
    const auto shift = static_cast<std::int64_t>(offsets[batch.rows.front()]);
    for (std::int64_t r = 0; r < wanted.size(); ++r) {
      const std::int64_t to
        = shift + wanted.entries_R[static_cast<std::size_t>(r)] * k;
      std::copy_n(found.logprobs_RK.begin() + r * k, k,
                  logprobs.as<float>().begin() + to);
      std::copy_n(found.ids_RK.begin() + r * k, k,
                  tokens.as<std::int32_t>().begin() + to);
    }
  };
  infer_sequences(impl, {ids, masks, rows.num_samples()}, context, options,
                  consume);
  out.add(std::move(tokens));
  out.add(std::move(logprobs));
}

void infer_values(Engine::Impl& impl, const net::Rows& rows,
                  const RunContext& context, const InferOptions& options,
                  net::Rows& out) {
  impl.need_scalar_head("values");
  const ColumnReader ids(rows.at("sequence_ids"));
  net::Column values
    = infer_column("values", infer_lengths(ids, rows.num_samples(), 1));
  const std::vector<std::uint64_t> offsets = values.offsets();
  const auto consume = [&](const InferBatch& batch) {
    const PackedSequences& packed = batch.sequences;
    const std::int64_t tokens = packed.tokens.num_tokens();
    const auto outputs
      = impl.scalar_outputs(batch.hidden_TH, tokens, impl.workspace_of(0));
    const float* out_T = outputs.floats();
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      float* to = values.as<float>().data() + offsets[batch.rows[i]] + 1;
      for (auto t = packed.cu_seqlens[i]; t < packed.cu_seqlens[i + 1]; ++t) {
        const auto token = packed.packed_L[static_cast<std::size_t>(t)];
        *to++ = token < 0 ? 0.0F : out_T[token];
      }
    }
  };
  infer_sequences(impl, {ids, infer_masks(rows, ""), rows.num_samples()},
                  context, options, consume);
  out.add(std::move(values));
}

/// Computes scores; `prefix`: "", or "chosen_" and "rejected_" of pairs.
void infer_scores(Engine::Impl& impl, const net::Rows& rows,
                  const std::string& prefix, const RunContext& context,
                  const InferOptions& options, net::Rows& out) {
  impl.need_scalar_head("scores");
  const ColumnReader ids(
    rows.at(prefix.empty() ? "sequence_ids" : prefix + "ids"));
  const std::int64_t width = impl.shape.hidden_size;
  net::Column scores = infer_column(
    prefix + "scores", std::vector<std::uint32_t>(rows.num_samples(), 1));
  const auto consume = [&](const InferBatch& batch) {
    const PackedSequences& packed = batch.sequences;
    const auto count = static_cast<std::int64_t>(batch.rows.size());
    float* out_N = impl.workspace_of(0).take(count);
    impl.backend.fill(out_N, count, 0.0F); // an empty sequence scores 0
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      const auto end = static_cast<std::size_t>(packed.cu_seqlens[i + 1]);
      const bool has_last = packed.cu_seqlens[i] < packed.cu_seqlens[i + 1]
                            && packed.packed_L[end - 1] >= 0;
      if (has_last)
        impl.backend.scalar_rows(
          impl.weights.head.const_data_ptr<float>(), width,
          batch.hidden_TH + packed.packed_L[end - 1] * width, 1, out_N + i);
    }
    const auto found = impl.backend.read(out_N, count);
    for (std::size_t i = 0; i < batch.rows.size(); ++i)
      scores.as<float>()[batch.rows[i]] = found.floats()[i];
  };
  infer_sequences(impl, {ids, infer_masks(rows, prefix), rows.num_samples()},
                  context, options, consume);
  out.add(std::move(scores));
}

void infer_rows(Engine::Impl& impl, const std::string& fn,
                const net::Rows& rows, const RunContext& context,
                const InferOptions& options, net::Rows& out) {
  if (fn == "logprobs" && rows.has("chosen_ids")) {
    infer_logprobs(impl, rows, "chosen_", context, options, out);
    infer_logprobs(impl, rows, "rejected_", context, options, out);
  } else if (fn == "logprobs") {
    infer_logprobs(impl, rows, "", context, options, out);
  } else if (fn == "top_logprobs") {
    infer_top_logprobs(impl, rows, context, options, out);
  } else if (fn == "values") {
    infer_values(impl, rows, context, options, out);
  } else if (fn == "scores" && rows.has("chosen_ids")) {
    infer_scores(impl, rows, "chosen_", context, options, out);
    infer_scores(impl, rows, "rejected_", context, options, out);
  } else if (fn == "scores") {
    infer_scores(impl, rows, "", context, options, out);
  } else {
    throw ConfigError(Place{},
                      "unknown inference '" + fn
                        + "'; known: logprobs, scores, top_logprobs, values");
  }
}

// Adds up what cp ranks have computed of the last stage's outputs, which are
// zero elsewhere.
void infer_join(const RunContext& context, net::Rows& out) {
  if (!context.groups.last_stage())
    return;
  for (net::Column& column : out.columns)
    context.groups.join_context(column.data.data(), column.num_elements(),
                                column.dtype, "outputs of a cp group");
}

} // namespace

net::Rows Engine::infer(const std::string& fn, const net::Rows& rows,
                        RunContext& context, const InferOptions& options) {
  impl_->backend.enter();
  net::Rows out(rows.samples, {});
  impl_->sync->begin(context.groups);
  if (rows.num_samples() > 0) {
    infer_rows(*impl_, fn, rows, context, options, out);
    infer_join(context, out);
  }
  while (impl_->sync->another_pass(/*own=*/false)) {
    impl_->workspace_of(0).reset();
    impl_->run_forward(pack({}), context, impl_->workspace_of(0), nullptr);
  }
  impl_->backend.wait(); // a stage that only sends has not waited yet
  context.groups.meet();
  impl_->workspaces.reset();
  return out;
}

} // namespace troupe::models
