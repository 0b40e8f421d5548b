#include "models/generate/rollout.hpp"

#include "models/kernels/threads.hpp"
#include "net/collectives/channel.hpp"

#include <algorithm>

namespace troupe::models::internal {

namespace {

constexpr std::int64_t generator_parallel_logits = 1 << 15;

/// Distance of the seeds of draws at one position (64 bits of the golden ratio
/// of another generator, so that it meets no other offset).
constexpr std::uint64_t draw_stride = 0xBF58476D1CE4E5B9;

/// Throws if a device found no token to draw.
void check_drawn(std::span<const DrawnToken> drawn) {
  if (std::ranges::any_of(drawn,
                          [](const DrawnToken& token) { return token.id < 0; }))
    logits_are_not_finite();
}

void take_tokens(Lane& lane, Sequence& s, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i, ++s.fed)
    lane.tokens.push_back({s.ids[static_cast<std::size_t>(s.fed)], s.slot,
                           static_cast<std::int32_t>(s.fed)});
  if (s.fed == s.size()) {
    lane.due.push_back(&s);
    lane.due_tokens.push_back(lane.token_count() - 1);
  }
}

} // namespace

Rollout::Rollout(Decoder& decoder, KvCache& cache, std::int64_t vocab_size,
                 const GenerateOptions& options, const RunContext& context)
  : decoder_(decoder),
    cache_(cache),
    vocab_size_(vocab_size),
    options_(options),
    context_(context) {
  TROUPE_CHECK(options.record.logprobs != ResponseLogprobs::masked
                 || options.top_k > 0,
               "masks have at most top_k ids");
  if (decoder.draws())
    draws_.on_device = device_filters(options, vocab_size);
  draws_.ahead
    = draws_.on_device && decoder.runs_ahead() && context.groups.stages() == 1;
  for (int i = 0; !draws_.on_device && i < std::max(1, compute_threads()); ++i)
    draws_.on_host.emplace_back(options, vocab_size);
}

void Rollout::begin(std::vector<Sequence>& sequences, FirstTurn first,
                    OnEnded on_ended) {
  on_ended_ = std::move(on_ended);
  talks_.sequences = &sequences;
  talks_.open = first == FirstTurn::when_asked;
  deal(sequences);
  count_experts();
}

void Rollout::round(PhaseSpans& spans) {
  const OnEnded on_ended = [&](const Sequence& s) {
    spans.leave(); // callbacks may end a span around this one
    on_ended_(s);
  };
  for (Lane& lane : lanes_) {
    if (lane.drawing)
      learn(lane, on_ended);
    if (!lane.finished())
      pass(lane, spans, on_ended);
    if (lane.finished()) // devices are idle when calls return
      lane.flight.finish();
  }
}

bool Rollout::finished() const {
  return std::ranges::all_of(lanes_, &Lane::finished);
}

/// Distributes sequences to lanes, identically on every stage.
void Rollout::deal(std::vector<Sequence>& sequences) {
  const auto count = static_cast<std::size_t>(cache_.room().pools);
  lanes_.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    lanes_[i].pool = static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < sequences.size(); ++i)
    if (talks_.open)
      talks_.index[sequences[i].sample] = i;
    else
      lanes_[i % count].waiting.push_back(&sequences[i]);
}

void Rollout::ask(Turn& turn) {
  const auto found = talks_.index.find(turn.sample);
  if (found == talks_.index.end())
    generation_failed(Errc::bad_input, "sample " + to_string(turn.sample)
                                         + " is not of this generation");
  Sequence& s = talks_.sequences->at(found->second);
  if (turn.start == TurnStart::anything)
    // shares its prompt with no other; its index names its mates' group
    s.group = talks_.sequences->size() + found->second;
  begin_turn(s, std::move(turn), vocab_size_);
  if (options_.stop_texts)
    s.watch.emplace(*options_.stop_texts);
  lanes_[found->second % lanes_.size()].waiting.push_back(&s);
}

/// Runs one pass of the lane through this stage.
void Rollout::pass(Lane& lane, PhaseSpans& spans, const OnEnded& on_ended) {
  // Sequences that have ended give their pages back before one is preempted.
  if (draws_.ahead && !lane.has_pages(cache_))
    finish_step(lane, on_ended);
  lane.admit(cache_, on_ended);
  if (lane.active.empty())
    return;
  context_.check();
  const bool prefill = gather(lane);
  if (lane.tokens.empty()) // all are at their limits
    return finish_step(lane, on_ended);
  spans.enter(prefill, lane.active.size());
  decoder_.feed(lane.tokens, cache_, context_, device_draw(lane));
  fed_tokens_ += lane.tokens.size();
  if (draws_.ahead)
    return run_ahead(lane, on_ended);
  if (lane.due.empty())
    return;
  make_room(lane);
  collect_experts(lane);
  lane.drawing = !context_.groups.last_stage();
  if (lane.drawing)
    return;
  draw(lane);
  if (context_.groups.stages() > 1)
    pass_on(lane);
  take_drawn(lane, on_ended);
}

/// Reads the tokens of the pass before the one that has just been launched,
/// which goes on.
void Rollout::run_ahead(Lane& lane, const OnEnded& on_ended) {
  StepInFlight next;
  if (!lane.due.empty())
    next = StepInFlight(std::move(lane.due), decoder_.drawn());
  finish_step(lane, on_ended);
  fed_tokens_ -= next.drop_ended();
  next.name_tokens();
  lane.flight = std::move(next);
}

/// Waits for the pass in flight, if there is one, and takes its tokens.
void Rollout::finish_step(Lane& lane, const OnEnded& on_ended) {
  auto [due, tokens] = lane.flight.finish();
  lane.due = std::move(due);
  lane.drawn = std::move(tokens);
  check_drawn(lane.drawn);
  take_drawn(lane, on_ended);
}

/// Returns the numbers of a token's mask, whatever the filters keep.
std::size_t Rollout::kept_width() const {
  if (options_.record.logprobs != ResponseLogprobs::masked)
    return 0;
  return 1 + static_cast<std::size_t>(std::min(options_.top_k, vocab_size_));
}

void Rollout::make_room(Lane& lane) const {
  lane.drawn.resize(lane.due.size());
  lane.masks.resize(lane.due.size() * kept_width());
  lane.experts.resize(lane.due.size() * experts_per_token_);
}

void Rollout::pass_on(Lane& lane) const {
  context_.groups.next->send(lane.drawn.data(), lane.drawn_bytes(),
                             "drawn tokens");
  if (!lane.masks.empty())
    context_.groups.next->send(lane.masks.data(), lane.mask_bytes(),
                               "sampling masks");
  if (!lane.experts.empty())
    context_.groups.next->send(lane.experts.data(), lane.expert_bytes(),
                               "experts");
}

/// Receives the tokens that the last stage drew, over the ring.
void Rollout::learn(Lane& lane, const OnEnded& on_ended) {
  const Groups& groups = context_.groups;
  groups.previous->receive(lane.drawn.data(), lane.drawn_bytes(),
                           "drawn tokens");
  if (!lane.masks.empty())
    groups.previous->receive(lane.masks.data(), lane.mask_bytes(),
                             "sampling masks");
  if (!lane.experts.empty())
    groups.previous->receive(lane.experts.data(), lane.expert_bytes(),
                             "experts");
  if (groups.stage() + 2 < groups.stages())
    pass_on(lane);
  lane.drawing = false;
  take_drawn(lane, on_ended);
}

/// Collects the tokens of a pass: responses first, then prompts, up to the
/// budget. Returns true if it includes a prompt.
bool Rollout::gather(Lane& lane) const {
  lane.tokens.clear();
  lane.due.clear();
  lane.due_tokens.clear();
  const std::int64_t budget
    = std::max<std::int64_t>(1, options_.max_batch_tokens);
  for (Sequence* s : lane.active)
    if (s->size() - s->fed == 1 && !s->finished()
        && lane.token_count() < budget)
      take_tokens(lane, *s, 1);
  bool prefill = false;
  for (Sequence* s : lane.active) {
    const std::int64_t left = s->size() - s->fed;
    const std::int64_t count = std::min(left, budget - lane.token_count());
    if (left <= 1 || count <= 0 || lane.waits_for_prefix(*s))
      continue;
    take_tokens(lane, *s, count);
    prefill = true;
  }
  return prefill;
}

/// Returns the draws that follow the pass on the device.
PassDraw Rollout::device_draw(Lane& lane) const {
  if (!draws_.on_device || !context_.groups.last_stage())
    return {};
  lane.keys.clear();
  for (const Sequence* s : lane.due)
    lane.keys.push_back(draw_key(name_of(*s)));
  return {lane.due_tokens, lane.keys, *draws_.on_device};
}

/// Draws the next token of every sequence whose last token was fed.
void Rollout::draw(Lane& lane) {
  if (!draws_.on_device)
    return draw_on_host(lane);
  lane.drawn = decoder_.drawn().wait();
  context_.groups.check(); // the stream came from the stage before
  check_drawn(lane.drawn);
}

void Rollout::draw_on_host(Lane& lane) {
  const float* logits_NV = decoder_.logits(lane.due_tokens);
  context_.groups.check();
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    auto& sampler = draws_.on_host[static_cast<std::size_t>(compute_thread())];
    for (auto i = static_cast<std::size_t>(begin);
         i < static_cast<std::size_t>(end); ++i) {
      const Sequence& s = *lane.due[i];
      lane.drawn[i]
        = sampler.draw({logits_NV + static_cast<std::int64_t>(i) * vocab_size_,
                        static_cast<std::size_t>(vocab_size_)},
                       s.ids, s.size() - s.num_prompt, name_of(s));
      if (lane.masks.empty())
        continue;
      const auto own
        = std::span(lane.masks).subspan(i * kept_width(), kept_width());
      own[0] = static_cast<std::int32_t>(sampler.kept().size());
      std::ranges::copy(sampler.kept(), own.begin() + 1);
    }
  };
  const auto count = static_cast<std::int64_t>(lane.due.size());
  if (count * vocab_size_ < generator_parallel_logits || count == 1)
    work(0, count);
  else
    parallel_for(0, count, 1, work);
}

DrawName Rollout::name_of(const Sequence& s) const {
  return {options_.seed + s.noise.draw * draw_stride, s.noise.step.value,
          s.sample.value, static_cast<std::uint32_t>(s.size())};
}

void Rollout::take_kept(const Lane& lane, std::size_t i,
                        TokenRecord& to) const {
  const auto own
    = std::span(lane.masks).subspan(i * kept_width(), kept_width());
  const auto ids = own.subspan(1, static_cast<std::size_t>(own[0]));
  to.kept_counts.push_back(own[0]);
  to.kept_ids.insert(to.kept_ids.end(), ids.begin(), ids.end());
}

/// Counts the experts per token of all stages, and of those before this one.
void Rollout::count_experts() {
  const Groups& groups = context_.groups;
  const std::int64_t own
    = options_.record.experts ? decoder_.experts_per_row() : 0;
  std::vector<std::int64_t> all(groups.stages(), own);
  if (options_.record.experts && groups.pp != nullptr)
    groups.pp->all_gather(&own, all.data(), 1, DType::i64, "experts per token");
  for (std::uint32_t stage = 0; stage < groups.stages(); ++stage) {
    if (stage < groups.stage())
      experts_before_ += static_cast<std::size_t>(all[stage]);
    experts_per_token_ += static_cast<std::size_t>(all[stage]);
  }
}

/// Sets the experts of due tokens in this stage's layers and those before it;
/// the last stage then has all.
void Rollout::collect_experts(Lane& lane) const {
  if (lane.experts.empty())
    return;
  const Groups& groups = context_.groups;
  if (!groups.first_stage())
    groups.previous->receive(lane.experts.data(), lane.expert_bytes(),
                             "experts of earlier stages");
  for (std::size_t i = 0; i < lane.due.size(); ++i)
    std::ranges::copy(decoder_.experts_of(lane.due_tokens[i]),
                      lane.experts.begin()
                        + static_cast<std::ptrdiff_t>(i * experts_per_token_
                                                      + experts_before_));
  if (!groups.last_stage())
    groups.next->send(lane.experts.data(), lane.expert_bytes(),
                      "experts of earlier stages");
}

/// Records the experts of the token before the drawn one, which it was drawn
/// after.
void Rollout::take_experts(const Lane& lane, std::size_t i, Sequence& s) const {
  std::vector<std::int32_t>& to = s.record.experts_LW;
  to.resize(s.ids.size() * experts_per_token_, -1);
  std::copy_n(lane.experts.begin()
                + static_cast<std::ptrdiff_t>(i * experts_per_token_),
              experts_per_token_,
              to.end() - static_cast<std::ptrdiff_t>(2 * experts_per_token_));
}

void Rollout::take_drawn(Lane& lane, const OnEnded& on_ended) {
  const auto& ends = options_.stop_ids;
  for (std::size_t i = 0; i < lane.due.size(); ++i) {
    Sequence& s = *lane.due[i];
    const DrawnToken& drawn = lane.drawn[i];
    s.ids.push_back(drawn.id);
    s.record.logprobs.push_back(drawn.logprob);
    if (!lane.masks.empty())
      take_kept(lane, i, s.record);
    if (!lane.experts.empty())
      take_experts(lane, i, s);
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
    if (talks_.open)
      lane.kept.push_back(s);
    else
      cache_.free_slot(s->slot);
    on_ended(*s);
    return true;
  });
}

} // namespace troupe::models::internal
