#include "actors/worker/led_generation.hpp"

#include "actors/user/user_work.hpp"
#include "models/data/sample_rows.hpp"
#include "models/generate/generate_options.hpp"
#include "models/generate/turn_tokens.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

/// Conversations of one run: the device thread replies to their turns until the
/// last one is over.
struct Conversations {
  std::shared_ptr<models::TurnQueue> turns
    = std::make_shared<models::TurnQueue>();
  /// Samples whose conversations are over; read by the device thread once the
  /// queue is closed.
  std::shared_ptr<std::vector<Sample>> samples
    = std::make_shared<std::vector<Sample>>();
};

std::vector<Sample> first_words(Shard& shard, StepId step,
                                const UserEntry& user, const net::Rows& rows,
                                const models::GenerateOptions& options) {
  const auto& column = rows.at("prompt_ids");
  const auto ids = column.as<std::int32_t>();
  const auto offsets = column.offsets();
  const auto positions
    = shard.worker->run.shapes.at(shard.replica.role).context_tokens();
  auto samples = user_samples(*shard.worker, step, user, rows);
  for (Sample& sample : samples) {
    const auto at = static_cast<std::size_t>(
      std::ranges::find(rows.samples, SampleId{sample.id()})
      - rows.samples.begin());
    const auto prompt = ids.subspan(offsets[at], column.lengths[at]);
    const auto most = static_cast<std::int64_t>(prompt.size())
                      + std::max<std::int64_t>(options.max_new_tokens, 0);
    models::begin_conversation(sample, prompt, std::min(most, positions));
  }
  return samples;
}

/// Returns the keys of the generation, then the actor's.
std::vector<KeyInfo> conversation_keys(const UserEntry& user) {
  std::vector<KeyInfo> all = {info(keys::sequence_ids), info(keys::loss_mask),
                              info(keys::logprobs), info(keys::truncated)};
  all.insert(all.end(), user.call.writes.begin(), user.call.writes.end());
  return all;
}

/// Returns the rows of ended conversations, by the key names of the call's
/// function.
net::Rows ended_rows(WorkerContext& worker, const UserEntry& user,
                     std::vector<Sample> samples, const std::string& who) {
  for (Sample& sample : samples)
    models::take_appended(sample, worker.data.tokenizer());
  return models::rows_of_samples(samples, conversation_keys(user), who);
}

/// Sends the samples to their actor; when all have returned, the turns are
/// over.
void begin(const Conversations& talk, const UserActorPool& pool,
           const std::string& who, std::vector<Sample> samples,
           const std::function<void(const Sample&)>& on_ended) {
  pool.run({.who = who,
            .samples = std::move(samples),
            .on_sample = on_ended,
            .done = [talk](std::variant<std::vector<Sample>, Failure> result) {
              if (const auto* failure = std::get_if<Failure>(&result))
                return talk.turns->fail(*failure);
              *talk.samples = std::move(std::get<std::vector<Sample>>(result));
              talk.turns->close();
            }});
}

/// Converts each ended sample to rows. One that lacks a key is refused with the
/// others, when all are over.
std::function<void(const Sample&)>
as_rows(WorkerContext& worker, const UserEntry& user, const std::string& who,
        const std::function<void(const net::Rows&)>& on_ended) {
  if (!on_ended)
    return {};
  return [=, &worker, &user](const Sample& ended) {
    try {
      on_ended(ended_rows(worker, user, {ended}, who));
    } catch (const FailureError&) {
    }
  };
}

} // namespace

net::Rows converse(Shard& shard, const UserEntry& user, const LedRun& run) {
  if (!has_leaders(shard, run)) {
    answer_turns(shard, run, run.rows, run.options, nullptr);
    return {};
  }
  WorkerContext& worker = *shard.worker;
  const auto step = run.context.step;
  const auto who = who_of(worker, user, step);
  make_ready(shard, run);
  auto& open = worker.user->conversations(user);
  const Conversations talk;
  open.open(run.rows.samples, {talk.turns, speaking_roles(run.call)});
  begin(talk, *worker.user->pool(worker, user), who,
        first_words(shard, step, user, run.rows, run.options),
        as_rows(worker, user, who, run.on_ended));
  try {
    answer_turns(shard, run, run.rows, run.options, talk.turns.get());
  } catch (const std::exception& error) {
    talk.turns->fail(to_failure(error, who));
    open.close(run.rows.samples);
    throw;
  }
  open.close(run.rows.samples);
  return ended_rows(worker, user, std::move(*talk.samples), who);
}

} // namespace troupe::actors
