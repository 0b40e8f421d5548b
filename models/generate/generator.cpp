#include "models/generate/generator.hpp"

#include "config/base/error.hpp"
#include "models/generate/rounds.hpp"
#include "models/generate/turns.hpp"
#include "net/collectives/collectives.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::models {
namespace {

using internal::FirstTurn;
using internal::Rollout;
using internal::Sequence;

/// Returns the numbers of all members of a group.
std::vector<std::int64_t> all_of(net::Collectives* group, std::int64_t mine) {
  std::vector<std::int64_t> all(group != nullptr ? group->size() : 1, mine);
  if (group != nullptr)
    group->all_gather(&mine, all.data(), 1, DType::i64, "cache pages");
  return all;
}

/// Returns the smallest number of all stages: those with fewer layers have room
/// for more pages.
std::int64_t least_of_stages(std::int64_t mine, const Groups& groups) {
  return std::ranges::min(all_of(groups.pp.get(), mine));
}

/// Returns the largest number of all devices of a copy of the model, which
/// remember different calls where one of them failed.
std::int64_t most_of_devices(std::int64_t mine, const Groups& groups) {
  mine = std::ranges::max(all_of(groups.tp.get(), mine));
  return std::ranges::max(all_of(groups.pp.get(), mine));
}

/// Reports each batch once all its sequences have finished.
class BatchEnds {
public:
  BatchEnds(std::span<const ResponseBatch> batches,
            std::span<const Sequence> sequences, const GenerateOptions& options,
            const GenerateEvents& events)
    : sequences_(sequences),
      options_(options),
      events_(events) {
    std::size_t first = 0;
    for (const ResponseBatch& batch : batches) {
      const auto count = batch.rows->num_samples();
      batches_.push_back({first, count, count});
      first += count;
      several_steps_ |= batch.step != batches.front().step;
    }
    for (std::size_t i = 0; i < batches_.size(); ++i)
      if (batches_[i].left == 0)
        tell(i);
  }

  /// Returns how many responses are generated at once if memory allows, at
  /// least 1; those that have ended need no slot.
  std::size_t at_once() const {
    std::size_t most = 1;
    std::size_t all = 0;
    for (const Batch& batch : batches_) {
      const auto own = sequences_.subspan(batch.first, batch.count);
      const auto running = batch.count
                           - static_cast<std::size_t>(
                             std::ranges::count_if(own, &Sequence::finished));
      most = std::max(most, running);
      all += running;
    }
    return several_steps_ ? std::max(most, all) : most;
  }
  std::size_t batch_of(const Sequence& s) const {
    const auto index = static_cast<std::size_t>(&s - sequences_.data());
    const auto behind
      = std::ranges::upper_bound(batches_, index, {}, &Batch::first);
    return static_cast<std::size_t>(behind - batches_.begin()) - 1;
  }
  void finished(const Sequence& s) {
    const auto i = batch_of(s);
    if (--batches_[i].left == 0)
      tell(i);
  }

private:
  struct Batch {
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t left = 0;
  };

  void tell(std::size_t i) const {
    if (events_.on_batch)
      events_.on_batch(
        i,
        internal::sequence_rows(
          sequences_.subspan(batches_[i].first, batches_[i].count), options_));
  }

  std::span<const Sequence> sequences_;
  const GenerateOptions& options_;
  const GenerateEvents& events_;
  std::vector<Batch> batches_;
  bool several_steps_ = false;
};

} // namespace

/// State that persists between runs.
struct Generator::Impl {
  Impl(const ModelShape& model, const Weights& weights, GeneratorLimits most,
       Backend& backend)
    : shape(model),
      limits(most),
      decoder(model, weights, backend),
      cache(model, backend, backend.storage(weights.operands)) {}

  /// Returns the limit of the cache under these options.
  std::uint64_t cache_limit(const GenerateOptions& options) const {
    return options.kv_cache_bytes > 0 ? options.kv_cache_bytes
                                      : limits.kv_cache_bytes;
  }
  /// Makes room in the cache for as many of the sequences at once as options
  /// and memory allow, at most `wanted`; the same on every stage.
  void make_room(const std::vector<Sequence>& sequences, std::size_t wanted,
                 const GenerateOptions& options, const Groups& groups);
  /// Packs the weights if they are new. Returns the generation of the
  /// sequences, of which `at_once` have slots if memory allows; null: there are
  /// none.
  std::unique_ptr<Rollout>
  begin(std::vector<Sequence>& sequences, std::size_t at_once,
        const GenerateOptions& options, const RunContext& context,
        internal::FirstTurn first, internal::OnEnded on_ended);

  /// Returns the most tokens of a sequence that has not ended; where passes are
  /// captured, of any run so far if one of that length fits: graphs are of a
  /// cache whose pages are where they were.
  std::int64_t longest(const std::vector<Sequence>& sequences,
                       const GenerateOptions& options,
                       const Groups& groups) const;

  const ModelShape& shape;
  GeneratorLimits limits;
  Decoder decoder;
  KvCache cache;
  bool packed = false;
  std::uint64_t fed_tokens = 0;
};

void Generator::Impl::make_room(const std::vector<Sequence>& sequences,
                                std::size_t wanted,
                                const GenerateOptions& options,
                                const Groups& groups) {
  const std::int64_t tokens = longest(sequences, options, groups);
  const std::int64_t fitting
    = least_of_stages(cache.pages_in(cache_limit(options), tokens), groups);
  if (fitting == 0)
    internal::generation_failed(
      Errc::out_of_memory, "a sequence of " + std::to_string(tokens)
                             + " tokens does not fit the KV cache of "
                             + std::to_string(cache_limit(options))
                             + " bytes; try a larger rollout.kv_cache_gb, or "
                               "auto");
  const std::int64_t at_once
    = std::min(static_cast<std::int64_t>(wanted),
               std::max<std::int64_t>(1, options.max_sequences));
  CacheRoom room = cache_room(at_once, groups.stages(), fitting, tokens,
                              cache.page_tokens_for(tokens));
  if (decoder.captures()) // as many pages as before, for the same reason
    room.pages = std::clamp(most_of_devices(cache.room().pages, groups),
                            room.pages, fitting);
  cache.reset(room);
}

std::int64_t Generator::Impl::longest(const std::vector<Sequence>& sequences,
                                      const GenerateOptions& options,
                                      const Groups& groups) const {
  std::int64_t tokens = 1;
  for (const Sequence& s : sequences)
    if (!s.finished())
      tokens = std::max(tokens, s.limits.all);
  if (!decoder.captures())
    return tokens;
  const std::int64_t before = most_of_devices(cache.room().tokens, groups);
  const std::int64_t most = std::max(tokens, before);
  const std::int64_t fitting = cache.pages_in(cache_limit(options), most);
  return least_of_stages(fitting, groups) > 0 ? most : tokens;
}

Generator::Generator(const ModelShape& shape, const Weights& weights,
                     GeneratorLimits limits, Backend& backend)
  : impl_(std::make_unique<Impl>(shape, weights, limits, backend)) {}

Generator::~Generator() = default;

void Generator::weights_changed() {
  impl_->packed = false;
}

std::uint64_t Generator::fed_tokens() const {
  return impl_->fed_tokens;
}

std::unique_ptr<Rollout>
Generator::Impl::begin(std::vector<Sequence>& sequences, std::size_t at_once,
                       const GenerateOptions& options,
                       const RunContext& context, FirstTurn first,
                       internal::OnEnded on_ended) {
  if (!packed)
    decoder.pack();
  packed = true;
  if (sequences.empty())
    return nullptr;
  make_room(sequences, at_once, options, context.groups);
  decoder.record_experts(options.record.experts);
  auto rollout = std::make_unique<Rollout>(decoder, cache, shape.vocab_size,
                                           options, context);
  rollout->begin(sequences, first, std::move(on_ended));
  return rollout;
}

net::Rows Generator::run(const net::Rows& prompts,
                         const GenerateOptions& options,
                         const RunContext& context) {
  net::Rows responses;
  run_batches({&prompts, 1}, options, context,
              {.on_batch = [&](std::size_t, net::Rows rows) {
                responses = std::move(rows);
              }});
  return responses;
}

void Generator::run_batches(std::span<const net::Rows> batches,
                            const GenerateOptions& options,
                            const RunContext& context,
                            const GenerateEvents& events) {
  std::vector<ResponseBatch> parts;
  for (const net::Rows& batch : batches)
    parts.push_back({&batch, context.step, options.max_new_tokens});
  run_batches(parts, options, context, events);
}

void Generator::run_batches(std::span<const ResponseBatch> batches,
                            const GenerateOptions& options,
                            const RunContext& context,
                            const GenerateEvents& events) {
  auto sequences = internal::make_sequences(batches, impl_->shape, options);
  BatchEnds ends(batches, sequences, options, events);
  const auto report = [&](const Sequence& s) {
    if (events.on_sample)
      events.on_sample({.sample = s.sample,
                        .batch = ends.batch_of(s),
                        .sequence_ids = s.ids,
                        .logprobs = s.record.logprobs,
                        .num_prompt_tokens = s.num_prompt,
                        .truncated = !s.stopped});
    ends.finished(s);
  };
  const auto rollout = impl_->begin(sequences, ends.at_once(), options, context,
                                    FirstTurn::now, report);
  if (!rollout)
    return;
  internal::run_rounds({&rollout, 1}, {}, context);
  impl_->fed_tokens = rollout->fed_tokens();
}

void Generator::converse(const net::Rows& prompts,
                         const GenerateOptions& options,
                         const RunContext& context, TurnQueue* turns) {
  const Speaker alone{*this, options, context};
  models::converse(prompts, {&alone, 1}, turns);
}

void converse(const net::Rows& prompts, std::span<const Speaker> speakers,
              TurnQueue* turns) {
  const auto report = [turns](const Sequence& s) {
    if (turns != nullptr)
      turns->end(s.sample, internal::turn_end(s));
  };
  std::vector<std::vector<Sequence>> sequences(speakers.size());
  std::vector<std::unique_ptr<Rollout>> rollouts;
  for (std::size_t i = 0; i < speakers.size(); ++i) {
    const auto& [generator, options, context] = speakers[i];
    const ResponseBatch batch{&prompts, context.step, options.max_new_tokens};
    auto& impl = *generator.impl_;
    sequences[i] = internal::make_sequences({&batch, 1}, impl.shape, options);
    rollouts.push_back(impl.begin(sequences[i], sequences[i].size(), options,
                                  context, FirstTurn::when_asked, report));
  }
  if (prompts.samples.empty())
    return;
  const auto& first = speakers.front().context;
  internal::run_rounds(rollouts, internal::TurnFeed(turns, first.groups),
                       first);
  for (std::size_t i = 0; i < speakers.size(); ++i)
    speakers[i].generator.impl_->fed_tokens = rollouts[i]->fed_tokens();
}

} // namespace troupe::models
