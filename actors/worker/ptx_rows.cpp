#include "actors/worker/ptx_rows.hpp"

#include "actors/worker/shard_actor.hpp"
#include "actors/worker_base/call_options.hpp"
#include "plans/workflow/call_split.hpp"

namespace troupe::actors {

std::optional<models::TrainRows> ptx_rows_of(Shard& shard, StepId step,
                                             const plans::Call& call,
                                             const RunOrder& order) {
  if (call.rows.ptx == 0)
    return std::nullopt;
  WorkerData& data = shard.worker->data;
  const auto rows = data.ptx_rows_of(step);
  std::vector<std::uint32_t> tokens;
  for (const auto row : rows)
    tokens.push_back(data.ptx().num_tokens(row));
  const plans::SampleRange all{SampleId{0},
                               static_cast<std::uint32_t>(rows.size())};
  const Strategy& strategy = shard.replica.strategy;
  const auto shares = plans::split_call(
    call, strategy.sample_ranks(), tokens, all, /*group_size=*/1,
    static_cast<std::uint32_t>(order.batches.size()));
  const auto& own = shares.at(shard.where.dp / strategy.cp);
  std::vector<std::uint32_t> own_rows;
  std::vector<SampleId> samples;
  for (const auto& batch : own)
    for (const auto sample : batch) {
      own_rows.push_back(rows.at(sample.value));
      samples.push_back(sample);
    }
  models::TrainRows beside;
  beside.spec = train_spec(shard.worker->run.settings, call,
                           shard.worker->run.plan.calls.at(call.name));
  beside.spec.fn = "ptx_loss";
  beside.spec.temperature = 1; // of texts that nobody sampled
  for (std::uint32_t epoch = 0; epoch < order.epochs; ++epoch)
    beside.spec.mini_batches.insert(beside.spec.mini_batches.end(), own.begin(),
                                    own.end());
  if (samples.empty())
    return beside;
  beside.rows = data.ptx().rows(own_rows, SampleId{0});
  beside.rows.samples = std::move(samples);
  return beside;
}

} // namespace troupe::actors
