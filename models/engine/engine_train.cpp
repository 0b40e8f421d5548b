// Engine::train, for each mini-batch: global denominators, pipelined
// micro-batches into the flat gradient, sums over owners and dp, clip, AdamW.
#include "config/base/error.hpp"
#include "config/trace/trace.hpp"
#include "models/engine/engine.hpp"
#include "models/engine/engine_impl.hpp"
#include "models/engine/expert_metrics.hpp"
#include "models/engine/kept_reader.hpp"
#include "models/engine/loss_outputs.hpp"
#include "models/engine/optimizer_step.hpp"
#include "models/engine/replay_reader.hpp"
#include "models/engine/row_reader.hpp"
#include "models/engine/train_rows.hpp"
#include "models/parallel/pipeline.hpp"
#include "models/transformer/context_sequences.hpp"
#include "net/base/rows.hpp"
#include "net/collectives/collectives.hpp"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace troupe::models {

namespace {

// Readers of ids per token: of what LossEntry::picked names, of sampling masks
// and of recorded experts.
struct PickedReaders {
  std::optional<ColumnReader> ids;
  std::map<std::string, ColumnReader> columns;
  std::optional<KeptReader> kept;
  std::optional<ReplayReader> replay;
};

class TrainRun;

// The rows of a micro-batch, and the run that has them.
struct TrainPart {
  TrainRun* run = nullptr; // null: other dp ranks have rows in this pass
  std::vector<std::size_t> rows;
};

// One train call: rows are read once, a mini-batch is an optimizer step. Its
// loop also takes the micro-batches of the run `beside` it, if any.
class TrainRun {
public:
  TrainRun(Engine::Impl& impl, const TrainSpec& spec, const net::Rows& rows,
           RunContext& context, TrainRun* beside)
    : impl_(impl),
      spec_(spec),
      context_(context),
      beside_(beside),
      loss_(impl.losses.find(spec.fn)),
      outputs_(impl, loss_, spec.temperature, context),
      index_(rows) {
    if (loss_.exposes.values || loss_.exposes.scores)
      impl.need_scalar_head(spec.fn);
    if (rows.num_samples() == 0)
      return; // no samples, but every rank takes part in the collectives
    ids_ = readers(rows, loss_.pairs ? "ids" : "sequence_ids");
    TROUPE_CHECK(!ids_.empty(), "the rows have no token ids");
    masks_ = readers(rows, "loss_mask");
    for (const std::string& key : loss_.columns)
      if (auto found = readers(rows, key); !found.empty())
        columns_.emplace(key, std::move(found));
    if (loss_.exposes.logprobs && !loss_.pairs && KeptReader::in(rows))
      picked_.kept.emplace(rows);
    if (ReplayReader::in(rows))
      picked_.replay.emplace(rows, impl.part.whole);
    if (!loss_.picked.ids.empty())
      picked_.ids.emplace(rows.at(loss_.picked.ids));
    for (const std::string& key : loss_.picked.columns)
      picked_.columns.emplace(key, ColumnReader(rows.at(key)));
  }

  MetricSums run() {
    impl_.sync->begin(context_.groups);
    std::vector<std::vector<TrainPart>> batches(spec_.mini_batches.size());
    add_parts(batches);
    if (beside_ != nullptr)
      beside_->add_parts(batches);
    std::vector<std::int64_t> passes;
    for (const auto& parts : batches)
      passes.push_back(static_cast<std::int64_t>(parts.size()));
    passes = impl_.sync->passes(std::move(passes));
    MetricSums sums;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      context_.check();
      impl_.sync->gather_weights(WeightReader::kernels);
      impl_.adam->clear_gradient();
      batches[i].resize(static_cast<std::size_t>(passes[i]));
      gradient(batches[i], i, sums);
      impl_.sync->finish();
      optimizer_step(impl_, context_, loss_.metric_prefix, sums);
    }
    impl_.sync->gather_weights(WeightReader::all);
    impl_.backend.wait();
    context_.groups.check();
    impl_.sync->end();
    return sums;
  }

private:
  using MicroBatchRows = std::vector<std::vector<std::size_t>>;

  // Returns readers of a key, or for pairs of its `chosen_` and `rejected_`.
  ColumnReaders readers(const net::Rows& rows, const std::string& key) const {
    ColumnReaders found;
    for (const char* prefix : {"chosen_", "rejected_"})
      if (loss_.pairs && rows.has(prefix + key))
        found.emplace_back(rows.at(prefix + key));
    if (!loss_.pairs && rows.has(key))
      found.emplace_back(rows.at(key));
    while (loss_.pairs && found.size() < 2 && rows.has(key))
      found.emplace_back(rows.at(key)); // one number per pair
    return found;
  }

  std::vector<std::size_t> rows_of(const std::vector<SampleId>& samples) const {
    std::vector<std::size_t> rows;
    for (const SampleId sample : samples)
      rows.push_back(index_.row(sample));
    return rows;
  }

  // Packs the sequences of these rows (two per row for pairs).
  PackedSequences pack_rows(std::span<const std::size_t> rows) const {
    std::vector<std::span<const std::int32_t>> sequences;
    for (const std::size_t row : rows)
      for (const ColumnReader& ids : ids_)
        sequences.push_back(ids.ids(row));
    return pack_own(context_.groups.cp.get(), sequences,
                    prompt_lengths(masks_, rows, sequences));
  }

  // A cp group has the same rows, which its first rank counts.
  Denominators own_denominators(std::span<const std::size_t> rows) const {
    Denominators own;
    if (!context_.groups.first_of_context())
      return own;
    own.pairs = loss_.pairs ? static_cast<double>(rows.size()) : 0;
    const PackedSequences packed = pack_rows(rows);
    const std::vector<float> mask = token_mask(masks_, rows, packed.cu_seqlens);
    count_masked(mask, packed.cu_seqlens, own);
    if (const auto at = columns_.find(loss_.mean_over); at != columns_.end())
      own.weights = masked_sum(at->second, rows, packed.cu_seqlens, mask);
    return own;
  }

  // Returns the denominators of all mini-batches over all ranks, with one sum.
  std::vector<Denominators> all_denominators() {
    std::vector<double> flat;
    for (const std::vector<SampleId>& samples : spec_.mini_batches) {
      const Denominators own = own_denominators(rows_of(samples));
      flat.insert(flat.end(),
                  {own.tokens, own.sequences, own.pairs, own.weights});
    }
    if (context_.groups.dp != nullptr && !flat.empty())
      context_.groups.dp->all_reduce_sum(flat.data(), flat.size(), DType::f64,
                                         "denominators");
    std::vector<Denominators> all;
    for (std::size_t i = 0; i < flat.size(); i += 4)
      all.push_back({flat[i], flat[i + 1], flat[i + 2], flat[i + 3]});
    return all;
  }

  // Appends this run's micro-batches to those of each optimizer step.
  void add_parts(std::vector<std::vector<TrainPart>>& batches) {
    denominators_ = all_denominators();
    TROUPE_CHECK(denominators_.size() == batches.size(),
                 "rows beside a training have other mini-batches");
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Denominators& denominators = denominators_[i];
      if (denominators.tokens == 0 && denominators.pairs == 0)
        continue; // nothing to learn from, on any rank
      if (!loss_.mean_over.empty() && denominators.weights == 0)
        continue; // all weights are zero
      for (auto& rows : micro_batches(rows_of(spec_.mini_batches[i])))
        batches[i].push_back({this, std::move(rows)});
    }
  }

  // Adds the mini-batch's gradient, micro-batch by micro-batch.
  void gradient(const std::vector<TrainPart>& parts, std::size_t step,
                MetricSums& sums) {
    const std::uint32_t stage = context_.groups.stage();
    const std::uint32_t stages = context_.groups.stages();
    std::vector<TrainMicroBatch> flying(pipeline_depth(stage, stages));
    for (const PipelineTurn& turn : one_forward_one_backward(
           stage, stages, static_cast<std::uint32_t>(parts.size()))) {
      const std::size_t slot = turn.micro_batch % flying.size();
      if (turn.backward && turn.micro_batch + 1 == parts.size())
        impl_.sync->last_backward();
      const TrainPart& part = parts[turn.micro_batch];
      if (turn.backward)
        backward_turn(flying[slot]);
      else if (part.run == nullptr)
        flying[slot] = empty_forward(impl_.workspace_of(slot));
      else
        flying[slot] = part.run->forward_turn(
          part.rows, impl_.workspace_of(slot), step, sums);
    }
  }

  // Returns the rows of each micro-batch with any tokens.
  MicroBatchRows micro_batches(const std::vector<std::size_t>& rows) const {
    std::vector<std::int64_t> lengths;
    for (const std::size_t row : rows) {
      std::int64_t length = 0;
      for (const ColumnReader& ids : ids_)
        length += ids.length(row);
      lengths.push_back(length);
    }
    int least = spec_.micro_batches;
    if (least == 0 && spec_.micro_batch_tokens == 0)
      least = default_micro_batches(context_.groups.stages());
    return micro_batch_rows(rows, lengths, spec_.micro_batch_tokens, least);
  }

  TrainMicroBatch forward_turn(const std::vector<std::size_t>& rows,
                               Workspace& workspace, std::size_t step,
                               MetricSums& sums) {
    static const trace::Name name = trace::name("forward");
    TrainMicroBatch m;
    m.workspace = &workspace;
    m.sequences = pack_rows(rows);
    m.rows = rows;
    if (picked_.replay)
      picked_.replay->read(rows, m.sequences);
    if (denominators_[step].sequences > 0)
      m.sequences.tokens.balance_weight
        = impl_.spec.optimizer.router_aux_loss_coef
          / denominators_[step].sequences;
    const trace::Span span(
      context_.track, name, context_.step.value,
      static_cast<std::uint64_t>(m.sequences.num_tokens()));
    workspace.reset();
    m.saved.recompute = spec_.recompute;
    m.hidden_TH
      = impl_.run_forward(m.sequences.tokens, context_, workspace, &m.saved);
    add_expert_metrics(impl_.backend, m.saved, m.sequences, impl_.shape.experts,
                       context_.groups, sums);
    if (!m.hidden_TH)
      return m; // the last stage has the loss
    m.mask_L = token_mask(masks_, rows, m.sequences.cu_seqlens);
    expose(m);
    LossResult result
      = loss_.function(m.batch, denominators_[step], spec_.loss);
    sums.merge(result.sums);
    m.loss = result.loss;
    return m;
  }

  // Takes part in a pass in which other dp ranks have rows.
  TrainMicroBatch empty_forward(Workspace& workspace) {
    TrainMicroBatch m;
    m.workspace = &workspace;
    m.sequences = pack_shared({}, {});
    workspace.reset();
    m.saved.recompute = spec_.recompute;
    m.hidden_TH
      = impl_.run_forward(m.sequences.tokens, context_, workspace, &m.saved);
    return m;
  }

  void backward_turn(TrainMicroBatch& m) {
    static const trace::Name name = trace::name("backward");
    const trace::Span span(
      context_.track, name, context_.step.value,
      static_cast<std::uint64_t>(m.sequences.num_tokens()));
    TypedPtr d_hidden_TH;
    impl_.model.gate->before_backward(impl_.part.whole.num_layers);
    if (m.loss.defined()) {
      m.loss.backward();
      d_hidden_TH = outputs_.gradient(m);
    }
    backward(impl_.model, m.sequences.tokens, m.saved, d_hidden_TH,
             *impl_.grads, context_, *m.workspace);
  }

  // Fills the leaf tensors that the loss reads with the model's outputs.
  void expose(TrainMicroBatch& m) {
    TrainBatch& b = m.batch;
    b.cu_seqlens = m.sequences.cu_seqlens;
    b.mask_T = at::zeros({m.sequences.num_tokens()}, at::kFloat);
    std::ranges::copy(m.mask_L, b.mask_T.mutable_data_ptr<float>());
    for (const auto& [key, column] : columns_)
      b.columns.emplace(key, packed_column(column, m.rows, b.cu_seqlens));
    if (picked_.ids)
      read_picked(m);
    outputs_.expose(m, picked_.kept ? &*picked_.kept : nullptr);
  }

  void read_picked(TrainMicroBatch& m) const {
    const std::int64_t width = per_token(*picked_.ids, ids_.front(), m.rows);
    m.picked_LK = packed_wide_ids(*picked_.ids, m.rows);
    for (const auto& [key, column] : picked_.columns)
      m.batch.columns.emplace(
        key, packed_wide_column(column, width, m.rows, m.batch.cu_seqlens));
  }

  Engine::Impl& impl_;
  const TrainSpec& spec_;
  RunContext& context_;
  TrainRun* beside_;
  const LossEntry& loss_;
  LossOutputs outputs_;
  SampleIndex index_;
  ColumnReaders ids_; // one, or chosen and rejected; same for the others
  ColumnReaders masks_;
  std::map<std::string, ColumnReaders> columns_;
  PickedReaders picked_;
  std::vector<Denominators> denominators_; // of each mini-batch, over all ranks
};

// Tensor and cp ranks have the same sums, and all of a stage's ranks those of
// its own layers.
MetricSums counted_sums(const Coordinate& where, const RunContext& context,
                        const MetricSums& sums) {
  if (where.tp != 0 || !context.groups.first_of_context())
    return {};
  return context.groups.last_stage() ? sums : expert_sums(sums);
}

} // namespace

MetricSums Engine::train(const TrainSpec& spec, const net::Rows& rows,
                         RunContext& context, const TrainRows* beside) {
  TROUPE_CHECK(impl_->spec.trainable,
               "role " + impl_->spec.role + " is not trained");
  impl_->backend.enter();
  std::optional<TrainRun> more;
  if (beside != nullptr)
    more.emplace(*impl_, beside->spec, beside->rows, context, nullptr);
  const MetricSums sums
    = TrainRun(*impl_, spec, rows, context, more ? &*more : nullptr).run();
  impl_->workspaces.reset();
  impl_->parameters.changed_by_optimizer();
  return counted_sums(impl_->part.where, context, sums);
}

} // namespace troupe::models
