#include "models/generator.hpp"

#include "config/error.hpp"
#include "models/decoder.hpp"
#include "models/internal/phase_spans.hpp"
#include "models/internal/sequences.hpp"
#include "models/sampler.hpp"
#include "net/channel.hpp"
#include "net/collectives.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <deque>
#include <string>

namespace troupe::models {
namespace {

using internal::PhaseSpans;
using internal::Sequence;

constexpr std::int64_t generator_parallel_logits = 1 << 15;

/// Stages with fewer layers have room for more: the smallest number counts.
std::int64_t least_of_stages(std::int64_t mine, const Groups& groups) {
  std::vector<std::int64_t> all(groups.stages(), mine);
  if (groups.pp != nullptr)
    groups.pp->all_gather(&mine, all.data(), 1, DType::i64, "cache slots");
  return *std::ranges::min_element(all);
}

/// A part of the sequences that goes through the model by itself. A pipeline
/// has one a stage, so that all stages work at the same time: the ring.
struct Lane {
  std::deque<Sequence*> waiting;
  std::vector<Sequence*> active;      ///< with a slot, in order of admission
  std::size_t num_slots = 0;          ///< of the cache's
  std::vector<DecodeRow> rows;        ///< of this pass
  std::vector<Sequence*> due;         ///< sequences that draw after this pass
  std::vector<std::int64_t> due_rows; ///< their last rows
  std::vector<DrawnToken> drawn;      ///< one each
  bool drawing = false; ///< the last stage draws, the tokens are not here yet

  bool finished() const {
    return !drawing && waiting.empty() && active.empty();
  }
  std::int64_t row_count() const {
    return static_cast<std::int64_t>(rows.size());
  }
  std::size_t drawn_bytes() const {
    return drawn.size() * sizeof(DrawnToken);
  }
};

} // namespace

/// What lives from run to run.
struct Generator::Impl {
  Impl(const ModelShape& model, const Weights& weights, GeneratorLimits most)
    : shape(model),
      limits(most),
      decoder(model, weights),
      cache(model) {}

  /// Most bytes of the cache under these options.
  std::uint64_t cache_limit(const GenerateOptions& options) const {
    return options.kv_cache_bytes > 0 ? options.kv_cache_bytes
                                      : limits.kv_cache_bytes;
  }
  /// As many slots as sequences, options and memory allow, on every stage.
  /// Returns their number.
  std::int64_t make_slots(const std::vector<Sequence>& sequences,
                          const GenerateOptions& options, const Groups& groups);

  const ModelShape& shape;
  GeneratorLimits limits;
  Decoder decoder;
  KvCache cache;
  bool packed = false;
  std::uint64_t fed_tokens = 0;
};

std::int64_t Generator::Impl::make_slots(const std::vector<Sequence>& sequences,
                                         const GenerateOptions& options,
                                         const Groups& groups) {
  std::int64_t tokens = 1;
  for (const Sequence& s : sequences)
    tokens = std::max(tokens, s.limit);
  const std::int64_t fitting = least_of_stages(
    static_cast<std::int64_t>(cache_limit(options) / cache.slot_bytes(tokens)),
    groups);
  if (fitting == 0)
    internal::generation_failed(
      Errc::out_of_memory, "a sequence of " + std::to_string(tokens)
                             + " tokens does not fit the KV cache of "
                             + std::to_string(cache_limit(options)) + " bytes");
  const auto wanted
    = std::min<std::int64_t>(static_cast<std::int64_t>(sequences.size()),
                             std::max<std::int64_t>(1, options.max_sequences));
  const std::int64_t slots = std::min(wanted, fitting);
  cache.reset(slots, tokens);
  return slots;
}

namespace {

/// One run of `Generator::run`.
class Rollout {
public:
  Rollout(Decoder& decoder, KvCache& cache, std::int64_t vocab_size,
          const GenerateOptions& options, const RunContext& context)
    : decoder_(decoder),
      cache_(cache),
      vocab_size_(vocab_size),
      options_(options),
      context_(context) {
    for (int i = 0; i < std::max(1, at::get_num_threads()); ++i)
      samplers_.emplace_back(options, vocab_size);
  }

  void run(std::vector<Sequence>& sequences, std::int64_t num_slots,
           const OnGenerated& on_generated) {
    PhaseSpans spans(context_);
    std::vector<Lane> lanes = deal(sequences, num_slots);
    while (
      std::ranges::any_of(lanes, [](const Lane& l) { return !l.finished(); }))
      for (Lane& lane : lanes) {
        if (lane.drawing)
          learn(lane, on_generated);
        if (!lane.finished())
          pass(lane, spans, on_generated);
      }
  }

  std::uint64_t fed_tokens() const {
    return fed_tokens_;
  }

private:
  /// Every stage deals alike.
  std::vector<Lane> deal(std::vector<Sequence>& sequences,
                         std::int64_t num_slots) const {
    const auto slots = static_cast<std::size_t>(num_slots);
    const auto count = std::min<std::size_t>(context_.groups.stages(), slots);
    std::vector<Lane> lanes(count);
    for (std::size_t i = 0; i < count; ++i)
      lanes[i].num_slots = slots / count + (i < slots % count ? 1 : 0);
    for (std::size_t i = 0; i < sequences.size(); ++i)
      lanes[i % count].waiting.push_back(&sequences[i]);
    return lanes;
  }

  /// The lane once through this stage.
  void pass(Lane& lane, PhaseSpans& spans, const OnGenerated& on_generated) {
    admit(lane, on_generated);
    if (lane.active.empty())
      return;
    context_.check();
    const bool prefill = gather(lane);
    spans.enter(prefill, lane.active.size());
    decoder_.feed(lane.rows, cache_, context_);
    fed_tokens_ += lane.rows.size();
    if (lane.due.empty())
      return;
    lane.drawn.resize(lane.due.size());
    lane.drawing = !context_.groups.last_stage();
    if (lane.drawing)
      return;
    draw(lane);
    if (context_.groups.stages() > 1)
      context_.groups.next->send(lane.drawn.data(), lane.drawn_bytes(),
                                 "drawn tokens");
    take_drawn(lane, on_generated);
  }

  /// The tokens that the last stage drew, round the ring.
  void learn(Lane& lane, const OnGenerated& on_generated) {
    const Groups& groups = context_.groups;
    groups.previous->receive(lane.drawn.data(), lane.drawn_bytes(),
                             "drawn tokens");
    if (groups.stage() + 2 < groups.stages())
      groups.next->send(lane.drawn.data(), lane.drawn_bytes(), "drawn tokens");
    lane.drawing = false;
    take_drawn(lane, on_generated);
  }

  /// Hands free slots to the prompts that wait longest.
  void admit(Lane& lane, const OnGenerated& on_generated) {
    while (!lane.waiting.empty()
           && (lane.active.size() < lane.num_slots
               || lane.waiting.front()->finished())) {
      Sequence* next = lane.waiting.front();
      lane.waiting.pop_front();
      if (next->finished()) { // no room for an answer
        report(*next, on_generated);
        continue;
      }
      next->slot = cache_.take_slot();
      lane.active.push_back(next);
    }
    for (Sequence* s : lane.active)
      if (s->fed == 0)
        share_prefix(lane, *s);
  }

  /// A prompt that another sequence has in the cache already is copied from
  /// there but for its last token, whose logits this sequence needs itself.
  void share_prefix(const Lane& lane, Sequence& s) {
    const std::int64_t shared = s.num_prompt - 1;
    if (shared == 0)
      return;
    for (const Sequence* other : lane.active)
      if (other->group == s.group && other->fed >= shared) {
        cache_.copy_prefix(other->slot, s.slot, shared);
        s.fed = shared;
        return;
      }
  }

  /// Whether one before it in the lane is about to feed the same prompt.
  static bool waits_for_prefix(const Lane& lane, const Sequence& s) {
    if (s.fed > 0 || s.num_prompt == 1)
      return false;
    for (const Sequence* other : lane.active) {
      if (other == &s)
        return false;
      if (other->group == s.group)
        return true;
    }
    return false;
  }

  /// Collects the rows of a pass: answers first, then prompts, up to the
  /// budget. Returns whether a prompt is among them.
  bool gather(Lane& lane) const {
    lane.rows.clear();
    lane.due.clear();
    lane.due_rows.clear();
    const std::int64_t budget
      = std::max<std::int64_t>(1, options_.max_batch_tokens);
    for (Sequence* s : lane.active)
      if (s->size() - s->fed == 1 && lane.row_count() < budget)
        take_rows(lane, *s, 1);
    bool prefill = false;
    for (Sequence* s : lane.active) {
      const std::int64_t left = s->size() - s->fed;
      const std::int64_t count = std::min(left, budget - lane.row_count());
      if (left <= 1 || count <= 0 || waits_for_prefix(lane, *s))
        continue;
      take_rows(lane, *s, count);
      prefill = true;
    }
    return prefill;
  }

  static void take_rows(Lane& lane, Sequence& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i, ++s.fed)
      lane.rows.push_back({s.ids[static_cast<std::size_t>(s.fed)], s.slot,
                           static_cast<std::int32_t>(s.fed)});
    if (s.fed == s.size()) {
      lane.due.push_back(&s);
      lane.due_rows.push_back(lane.row_count() - 1);
    }
  }

  /// Draws the next token of every sequence whose last token was fed.
  void draw(Lane& lane) {
    const float* logits_NV = decoder_.logits(lane.due_rows, context_);
    const auto work = [&](std::int64_t begin, std::int64_t end) {
      auto& sampler = samplers_[static_cast<std::size_t>(at::get_thread_num())];
      for (auto i = static_cast<std::size_t>(begin);
           i < static_cast<std::size_t>(end); ++i)
        lane.drawn[i]
          = draw_one(*lane.due[i], sampler,
                     {logits_NV + static_cast<std::int64_t>(i) * vocab_size_,
                      static_cast<std::size_t>(vocab_size_)});
    };
    const auto count = static_cast<std::int64_t>(lane.due.size());
    if (count * vocab_size_ < generator_parallel_logits || count == 1)
      work(0, count);
    else
      at::parallel_for(0, count, 1, work);
  }

  DrawnToken draw_one(const Sequence& s, Sampler& sampler,
                      std::span<const float> logits) const {
    const DrawName name{options_.seed, context_.step.value, s.sample.value,
                        static_cast<std::uint32_t>(s.size())};
    return sampler.draw(logits, s.ids, s.size() - s.num_prompt, name);
  }

  void take_drawn(Lane& lane, const OnGenerated& on_generated) {
    const auto& ends = options_.stop_ids;
    for (std::size_t i = 0; i < lane.due.size(); ++i) {
      Sequence& s = *lane.due[i];
      const DrawnToken& drawn = lane.drawn[i];
      s.ids.push_back(drawn.id);
      s.logprobs.push_back(drawn.logprob);
      const bool ended
        = !options_.ignore_eos
          && std::find(ends.begin(), ends.end(), drawn.id) != ends.end();
      const bool told = s.watch && s.watch->push(drawn.id)
                        && s.size() - s.num_prompt >= options_.min_new_tokens;
      s.stopped = ended || told;
    }
    std::erase_if(lane.active, [&](Sequence* s) {
      if (!s->finished())
        return false;
      cache_.free_slot(s->slot);
      report(*s, on_generated);
      return true;
    });
  }

  static void report(const Sequence& s, const OnGenerated& on_generated) {
    if (on_generated)
      on_generated({.sample = s.sample,
                    .sequence_ids = s.ids,
                    .logprobs = s.logprobs,
                    .num_prompt_tokens = s.num_prompt,
                    .truncated = !s.stopped});
  }

  Decoder& decoder_;
  KvCache& cache_;
  std::int64_t vocab_size_;
  const GenerateOptions& options_;
  const RunContext& context_;
  std::vector<Sampler> samplers_; ///< one a thread
  std::uint64_t fed_tokens_ = 0;
};

} // namespace

Generator::Generator(const ModelShape& shape, const Weights& weights,
                     GeneratorLimits limits)
  : impl_(std::make_unique<Impl>(shape, weights, limits)) {}

Generator::~Generator() = default;

void Generator::weights_changed() {
  impl_->packed = false;
}

void Generator::release() {
  impl_->decoder.release();
  impl_->cache.release();
  impl_->packed = false;
}

std::uint64_t Generator::fed_tokens() const {
  return impl_->fed_tokens;
}

net::Rows Generator::run(const net::Rows& prompts,
                         const GenerateOptions& options,
                         const RunContext& context,
                         const OnGenerated& on_generated) {
  auto sequences = internal::make_sequences(prompts, impl_->shape, options);
  if (!impl_->packed)
    impl_->decoder.pack();
  impl_->packed = true;
  if (sequences.empty())
    return internal::sequence_rows(sequences);
  const std::int64_t slots
    = impl_->make_slots(sequences, options, context.groups);
  Rollout rollout(impl_->decoder, impl_->cache, impl_->shape.vocab_size,
                  options, context);
  rollout.run(sequences, slots, on_generated);
  impl_->fed_tokens = rollout.fed_tokens();
  return internal::sequence_rows(sequences);
}

} // namespace troupe::models
