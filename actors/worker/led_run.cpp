#include "actors/worker/led_run.hpp"

#include "actors/worker/device_jobs.hpp"
#include "actors/worker/shard_server.hpp"
#include "models/engine/conversation.hpp"
#include "models/generate/generate_options.hpp"
#include "models/generate/response_batch.hpp"

#include <fmt/format.h>

#include <deque>
#include <limits>

namespace troupe::actors {

namespace {

/// Distance of the seeds of the roles of a conversation: with equal weights
/// they would draw alike (64 bits of the golden ratio of another generator, so
/// that it meets no offset of calls or draws).
constexpr std::uint64_t role_stride = 0x94D049BB133111EB;

/// Returns the shard of a second role, which the plan has on the same devices.
/// Frozen weights have one version, so there is none to check (I4).
std::shared_ptr<Shard> shard_beside(const Shard& shard,
                                    const std::string& role) {
  const auto id = shard.worker->run.replicas.beside(shard.replica, role);
  const auto& loaded = shard.worker->threads.shards.at(shard.rank);
  const auto found = loaded.find(id);
  auto beside = found == loaded.end() ? nullptr : found->second.lock();
  TROUPE_CHECK(beside && beside->engine,
               fmt::format("{} is loaded beside {}", role, shard.replica.role));
  return beside;
}

/// Returns the options by which the call's `number`-th second role draws: those
/// of the call, as all tokens of a sample are of one temperature.
models::GenerateOptions second_options(WorkerContext& worker,
                                       models::GenerateOptions options,
                                       const std::string& role,
                                       std::uint64_t number) {
  options.seed += number * role_stride;
  options.record = {};
  options.stop_ids = worker.run.shapes.at(role).ends();
  if (options.stop_ids.empty() && worker.data.tokenizer().eos_id() >= 0)
    options.stop_ids = {worker.data.tokenizer().eos_id()};
  if (!worker.run.settings.rollout.kv_cache_gb) // as many slots as the first
    options.kv_cache_bytes = std::numeric_limits<std::int64_t>::max();
  return options;
}

/// The models that speak in the conversations of a run.
class RunSpeakers {
public:
  RunSpeakers(Shard& shard, const LedRun& run,
              const models::GenerateOptions& options) {
    speakers_.push_back({*shard.engine, options, run.context});
    for (const auto& role : run.call.by.with) {
      shards_.push_back(shard_beside(shard, role));
      options_.push_back(
        second_options(*shard.worker, options, role, shards_.size()));
      contexts_.push_back(run_context(*shards_.back(), run.context.step));
      speakers_.push_back(
        {*shards_.back()->engine, options_.back(), contexts_.back()});
    }
  }

  std::span<const models::SpeakingEngine> all() const {
    return speakers_;
  }

private:
  std::vector<std::shared_ptr<Shard>> shards_; ///< of second roles
  std::deque<models::GenerateOptions> options_;
  std::deque<models::RunContext> contexts_;
  std::vector<models::SpeakingEngine> speakers_;
};

} // namespace

std::vector<std::string> speaking_roles(const plans::Call& call) {
  std::vector<std::string> roles = {call.role};
  roles.insert(roles.end(), call.by.with.begin(), call.by.with.end());
  return roles;
}

bool has_leaders(const Shard& shard, const LedRun& run) {
  return !run.rows.samples.empty() && shard.where.tp == 0
         && shard.where.pp == 0;
}

void make_ready(Shard& shard, const LedRun& run) {
  if (is_served(shard, run.call))
    server_of(shard).make_ready(*shard.engine, to_string(run.version),
                                run.context);
}

void answer_turns(Shard& shard, const LedRun& run, const net::Rows& prompts,
                  const models::GenerateOptions& options,
                  models::TurnQueue* turns) {
  if (!is_served(shard, run.call))
    return models::converse(RunSpeakers(shard, run, options).all(), prompts,
                            turns);
  if (turns == nullptr) // a server's device has the whole model to itself
    return;
  const models::ResponseBatch batch{&prompts, run.context.step,
                                    options.max_new_tokens};
  server_of(shard).converse(*shard.engine, to_string(run.version), batch,
                            options, run.context, *turns);
}

} // namespace troupe::actors
