#include "actors/conversations.hpp"

#include "actors/own_work.hpp"
#include "models/conversation.hpp"
#include "models/generate_options.hpp"
#include "models/sample_rows.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

/// Conversations of one run: the device thread answers their turns until the
/// last one is over.
struct Conversations {
  std::shared_ptr<models::TurnQueue> turns
    = std::make_shared<models::TurnQueue>();
  /// Whose conversations are over; the device thread's once the queue closed.
  std::shared_ptr<std::vector<Sample>> samples
    = std::make_shared<std::vector<Sample>>();
};

std::vector<Sample> first_words(Shard& shard, StepId step, const OwnEntry& own,
                                const net::Rows& rows,
                                const models::GenerateOptions& options) {
  const auto& column = rows.at("prompt_ids");
  const auto ids = column.as<std::int32_t>();
  const auto offsets = column.offsets();
  const auto positions
    = shard.worker->shapes.at(shard.replica.role).context_tokens();
  auto samples = own_samples(*shard.worker, step, own, rows);
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

/// The keys of the generation, then the actor's.
std::vector<KeyInfo> conversation_keys(const OwnEntry& own) {
  std::vector<KeyInfo> all = {info(keys::sequence_ids), info(keys::loss_mask),
                              info(keys::logprobs), info(keys::truncated)};
  all.insert(all.end(), own.call.writes.begin(), own.call.writes.end());
  return all;
}

/// Whose conversations are over, by the names of the call's function.
net::Rows ended_rows(WorkerContext& worker, const OwnEntry& own,
                     std::vector<Sample> samples, const std::string& who) {
  for (Sample& sample : samples)
    models::take_appended(sample, worker.tokenizer());
  return models::rows_of_samples(samples, conversation_keys(own), who);
}

/// Hands the samples to their actor; when it has all back, the turns are over.
void begin(const Conversations& talk, const OwnCrew& crew,
           const std::string& who, std::vector<Sample> samples,
           const std::function<void(const Sample&)>& on_ended) {
  crew.run({.who = who,
            .samples = std::move(samples),
            .on_sample = on_ended,
            .done = [talk](std::variant<std::vector<Sample>, Failure> result) {
              if (const auto* failure = std::get_if<Failure>(&result))
                return talk.turns->fail(*failure);
              *talk.samples = std::move(std::get<std::vector<Sample>>(result));
              talk.turns->close();
            }});
}

/// One that lacks a key is refused with the others, when all are over.
std::function<void(const Sample&)>
as_rows(WorkerContext& worker, const OwnEntry& own, const std::string& who,
        const std::function<void(const net::Rows&)>& on_ended) {
  if (!on_ended)
    return {};
  return [=, &worker, &own](const Sample& ended) {
    try {
      on_ended(ended_rows(worker, own, {ended}, who));
    } catch (const FailureError&) {
    }
  };
}

} // namespace

net::Rows converse(Shard& shard, const OwnEntry& own, const net::Rows& rows,
                   const models::GenerateOptions& options,
                   models::RunContext& context,
                   const std::function<void(const net::Rows&)>& on_ended) {
  if (rows.samples.empty() || shard.where.tp != 0 || shard.where.pp != 0) {
    shard.engine->converse(rows, options, nullptr, context);
    return {};
  }
  WorkerContext& worker = *shard.worker;
  const auto who = who_of(worker, own, context.step);
  auto& open = worker.own->conversations(own);
  const Conversations talk;
  open.open(rows.samples, talk.turns);
  begin(talk, *worker.own->crew(worker, own), who,
        first_words(shard, context.step, own, rows, options),
        as_rows(worker, own, who, on_ended));
  try {
    shard.engine->converse(rows, options, talk.turns.get(), context);
  } catch (const std::exception& error) {
    talk.turns->fail(to_failure(error, who));
    open.close(rows.samples);
    throw;
  }
  open.close(rows.samples);
  return ended_rows(worker, own, std::move(*talk.samples), who);
}

} // namespace troupe::actors
