#include "models/generator.hpp"

#include "config/error.hpp"
#include "config/trace.hpp"
#include "models/decoder.hpp"
#include "models/sampler.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <deque>
#include <string>

namespace troupe::models {
namespace {

constexpr std::int64_t generator_parallel_logits = 1 << 15;

[[noreturn]] void generator_fail(Errc code, const std::string& what) {
  throw FailureError(
    {.code = code, .who = "generation", .what = what, .cause = ""});
}

/// One sample on its way.
struct Sequence {
  SampleId sample;
  std::vector<std::int32_t> ids; ///< prompt, then answer
  std::vector<float> logprobs;   ///< as long as ids
  std::int64_t num_prompt = 0;
  std::int64_t limit = 0; ///< most tokens in all
  std::int64_t fed = 0;   ///< tokens in the cache
  std::int32_t slot = -1;
  bool stopped = false; ///< by an end token

  std::int64_t size() const {
    return static_cast<std::int64_t>(ids.size());
  }
  bool finished() const {
    return stopped || size() >= limit;
  }
};

/// "prefill" while prompts are fed, "decode" in between: spans of the trace.
class PhaseSpans {
public:
  explicit PhaseSpans(const RunContext& context) : context_(context) {}
  ~PhaseSpans() {
    leave();
  }
  PhaseSpans(const PhaseSpans&) = delete;
  PhaseSpans& operator=(const PhaseSpans&) = delete;

  void enter(bool prefill, std::size_t num_sequences) {
    static const trace::Name names[]
      = {trace::name("decode"), trace::name("prefill")};
    static const trace::Name under_way = trace::name("sequences");
    trace::counter(context_.track, under_way,
                   static_cast<double>(num_sequences));
    const trace::Name next = names[prefill ? 1 : 0];
    if (is_open_ && open_ == next)
      return;
    leave();
    trace::begin(context_.track, next, context_.step.value);
    open_ = next;
    is_open_ = true;
  }

private:
  void leave() {
    if (is_open_)
      trace::end(context_.track, open_);
    is_open_ = false;
  }

  const RunContext& context_;
  trace::Name open_{};
  bool is_open_ = false;
};

std::vector<Sequence> make_sequences(const net::Rows& prompts,
                                     const ModelShape& shape,
                                     const GenerateOptions& options) {
  const net::Column& column = prompts.at("prompt_ids");
  const auto ids = column.as<std::int32_t>();
  const auto offsets = column.offsets();
  std::vector<Sequence> sequences(prompts.num_samples());
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Sequence& s = sequences[i];
    s.sample = prompts.samples[i];
    const auto prompt = ids.subspan(offsets[i], offsets[i + 1] - offsets[i]);
    const std::string who = "sample " + to_string(s.sample) + ": ";
    if (prompt.empty())
      generator_fail(Errc::bad_input, who + "its prompt is empty");
    if (static_cast<std::int64_t>(prompt.size()) > shape.max_positions)
      generator_fail(Errc::bad_input,
                     who + "its prompt of " + std::to_string(prompt.size())
                       + " tokens is longer than the model's "
                       + std::to_string(shape.max_positions) + " positions");
    for (const std::int32_t id : prompt)
      if (id < 0 || id >= shape.vocab_size)
        generator_fail(Errc::bad_input, who + "token id " + std::to_string(id)
                                          + " is not in the vocabulary of "
                                          + std::to_string(shape.vocab_size));
    s.ids.assign(prompt.begin(), prompt.end());
    s.logprobs.assign(prompt.size(), 0.0F);
    s.num_prompt = s.size();
    s.limit = std::min(s.num_prompt
                         + std::max<std::int64_t>(options.max_new_tokens, 0),
                       shape.max_positions);
    s.ids.reserve(static_cast<std::size_t>(s.limit));
  }
  return sequences;
}

net::Rows rows_of(const std::vector<Sequence>& sequences) {
  std::vector<SampleId> samples;
  std::vector<std::uint32_t> lengths;
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> mask;
  std::vector<float> logprobs;
  std::vector<std::uint8_t> truncated;
  for (const Sequence& s : sequences) {
    samples.push_back(s.sample);
    lengths.push_back(static_cast<std::uint32_t>(s.size()));
    ids.insert(ids.end(), s.ids.begin(), s.ids.end());
    mask.insert(mask.end(), static_cast<std::size_t>(s.num_prompt), 0);
    mask.insert(mask.end(), static_cast<std::size_t>(s.size() - s.num_prompt),
                1);
    logprobs.insert(logprobs.end(), s.logprobs.begin(), s.logprobs.end());
    truncated.push_back(s.stopped ? 0 : 1);
  }
  const std::vector<std::uint32_t> ones(samples.size(), 1);
  net::Rows rows;
  rows.samples = std::move(samples);
  rows.add(net::make_column("sequence_ids", DType::i32, lengths, ids.data()));
  rows.add(net::make_column("loss_mask", DType::u8, lengths, mask.data()));
  rows.add(net::make_column("logprobs", DType::f32, lengths, logprobs.data()));
  rows.add(net::make_column("truncated", DType::u8, ones, truncated.data()));
  return rows;
}

} // namespace

/// What lives from run to run.
struct Generator::Impl {
  Impl(const ModelShape& model, const Weights& weights, GeneratorLimits most)
    : shape(model),
      limits(most),
      decoder(model, weights),
      cache(model) {}

  /// As many slots as sequences, options and memory allow.
  void make_slots(const std::vector<Sequence>& sequences,
                  const GenerateOptions& options);

  const ModelShape& shape;
  GeneratorLimits limits;
  Decoder decoder;
  KvCache cache;
  bool packed = false;
};

void Generator::Impl::make_slots(const std::vector<Sequence>& sequences,
                                 const GenerateOptions& options) {
  std::int64_t tokens = 1;
  for (const Sequence& s : sequences)
    tokens = std::max(tokens, s.limit);
  const auto fitting = static_cast<std::int64_t>(limits.kv_cache_bytes
                                                 / cache.slot_bytes(tokens));
  if (fitting == 0)
    generator_fail(Errc::out_of_memory,
                   "a sequence of " + std::to_string(tokens)
                     + " tokens does not fit the KV cache of "
                     + std::to_string(limits.kv_cache_bytes) + " bytes");
  const auto wanted
    = std::min<std::int64_t>(static_cast<std::int64_t>(sequences.size()),
                             std::max<std::int64_t>(1, options.max_sequences));
  cache.reset(std::min(wanted, fitting), tokens);
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

  void run(std::vector<Sequence>& sequences, const OnGenerated& on_generated) {
    PhaseSpans spans(context_);
    std::deque<Sequence*> waiting;
    for (Sequence& s : sequences)
      waiting.push_back(&s);
    while (!waiting.empty() || !active_.empty()) {
      admit(waiting, on_generated);
      if (active_.empty())
        continue;
      context_.check();
      const bool prefill = gather();
      spans.enter(prefill, active_.size());
      decoder_.feed(rows_, cache_, context_);
      draw();
      retire(on_generated);
    }
  }

private:
  /// Hands free slots to the prompts that wait longest.
  void admit(std::deque<Sequence*>& waiting, const OnGenerated& on_generated) {
    while (!waiting.empty()
           && (cache_.has_free_slot() || waiting.front()->finished())) {
      Sequence* next = waiting.front();
      waiting.pop_front();
      if (next->finished()) { // no room for an answer
        report(*next, on_generated);
        continue;
      }
      next->slot = cache_.take_slot();
      active_.push_back(next);
    }
  }

  /// Collects the rows of a pass: answers first, then prompts, up to the
  /// budget. Returns whether a prompt is among them.
  bool gather() {
    rows_.clear();
    due_.clear();
    due_rows_.clear();
    const std::int64_t budget
      = std::max<std::int64_t>(1, options_.max_batch_tokens);
    for (Sequence* s : active_)
      if (s->size() - s->fed == 1 && row_count() < budget)
        take_rows(*s, 1);
    bool prefill = false;
    for (Sequence* s : active_) {
      const std::int64_t left = s->size() - s->fed;
      const std::int64_t count = std::min(left, budget - row_count());
      if (left <= 1 || count <= 0)
        continue;
      take_rows(*s, count);
      prefill = true;
    }
    return prefill;
  }

  std::int64_t row_count() const {
    return static_cast<std::int64_t>(rows_.size());
  }

  void take_rows(Sequence& s, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i, ++s.fed)
      rows_.push_back({s.ids[static_cast<std::size_t>(s.fed)], s.slot,
                       static_cast<std::int32_t>(s.fed)});
    if (s.fed == s.size()) {
      due_.push_back(&s);
      due_rows_.push_back(row_count() - 1);
    }
  }

  /// Draws the next token of every sequence whose last token was fed.
  void draw() {
    if (due_.empty())
      return;
    const float* logits_NV = decoder_.logits(due_rows_);
    const auto work = [&](std::int64_t begin, std::int64_t end) {
      auto& sampler = samplers_[static_cast<std::size_t>(at::get_thread_num())];
      for (std::int64_t i = begin; i < end; ++i)
        draw_one(
          *due_[static_cast<std::size_t>(i)], sampler,
          {logits_NV + i * vocab_size_, static_cast<std::size_t>(vocab_size_)});
    };
    const auto count = static_cast<std::int64_t>(due_.size());
    if (count * vocab_size_ < generator_parallel_logits || count == 1)
      work(0, count);
    else
      at::parallel_for(0, count, 1, work);
  }

  void draw_one(Sequence& s, Sampler& sampler, std::span<const float> logits) {
    const DrawName name{options_.seed, context_.step.value, s.sample.value,
                        static_cast<std::uint32_t>(s.size())};
    const DrawnToken drawn
      = sampler.draw(logits, s.ids, s.size() - s.num_prompt, name);
    s.ids.push_back(drawn.id);
    s.logprobs.push_back(drawn.logprob);
    const auto& ends = options_.stop_ids;
    s.stopped = !options_.ignore_eos
                && std::find(ends.begin(), ends.end(), drawn.id) != ends.end();
  }

  void retire(const OnGenerated& on_generated) {
    std::erase_if(active_, [&](Sequence* s) {
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
  std::vector<Sampler> samplers_;      ///< one a thread
  std::vector<Sequence*> active_;      ///< with a slot, in order of admission
  std::vector<DecodeRow> rows_;        ///< of this pass
  std::vector<Sequence*> due_;         ///< sequences that draw after this pass
  std::vector<std::int64_t> due_rows_; ///< their last rows
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

net::Rows Generator::run(const net::Rows& prompts,
                         const GenerateOptions& options,
                         const RunContext& context,
                         const OnGenerated& on_generated) {
  auto sequences = make_sequences(prompts, impl_->shape, options);
  if (!impl_->packed)
    impl_->decoder.pack();
  impl_->packed = true;
  impl_->make_slots(sequences, options);
  Rollout(impl_->decoder, impl_->cache, impl_->shape.vocab_size, options,
          context)
    .run(sequences, on_generated);
  return rows_of(sequences);
}

} // namespace troupe::models
