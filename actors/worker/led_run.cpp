#include "actors/worker/led_run.hpp"

#include "actors/worker/shard_server.hpp"
#include "models/generate/generate_options.hpp"
#include "models/generate/response_batch.hpp"

namespace troupe::actors {

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
    return shard.engine->converse(prompts, options, turns, run.context);
  if (turns == nullptr) // a server's device has the whole model to itself
    return;
  const models::ResponseBatch batch{&prompts, run.context.step,
                                    options.max_new_tokens};
  server_of(shard).converse(*shard.engine, to_string(run.version), batch,
                            options, run.context, *turns);
}

} // namespace troupe::actors
