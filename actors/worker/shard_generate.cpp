#include "actors/worker/shard_generate.hpp"

#include "actors/protocol/sum_parts.hpp"
#include "actors/user/sample_stream.hpp"
#include "actors/worker/agent_generation.hpp"
#include "actors/worker/device_jobs.hpp"
#include "actors/worker/led_generation.hpp"
#include "actors/worker/shard_memory.hpp"
#include "actors/worker/shard_server.hpp"
#include "actors/worker_base/call_options.hpp"
#include "actors/worker_base/task_rows.hpp"
#include "config/base/log.hpp"
#include "config/trace/trace_at.hpp"
#include "models/generate/generate_events.hpp"
#include "models/generate/response_batch.hpp"
#include "models/records/rollout_replay.hpp"
#include "models/text/stop_texts.hpp"
#include "plans/schedule/slice_versions.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

/// Returns a noise offset for each generate call, added to the run's: two roles
/// with equal weights must not give equal responses. The first call has the
/// run's.
std::uint64_t own_noise(const WorkerContext& worker, const plans::Call& call) {
  std::uint64_t before = 0;
  for (const auto& other : worker.run.workflow.calls) {
    if (other.name == call.name)
      break;
    before += other.kind == plans::CallKind::generate
                  && other.evaluates == call.evaluates
                ? 1
                : 0;
  }
  return before * 0x9E3779B97F4A7C15;
}

/// Returns a response as rows of one sample, by the key names of the call's
/// function.
net::Rows rows_of_one(const models::GeneratedSample& response) {
  const auto length = response.sequence_ids.size();
  const std::vector lengths{static_cast<std::uint32_t>(length)};
  std::vector<std::uint8_t> mask(length, 1);
  std::fill_n(mask.begin(), response.num_prompt_tokens, std::uint8_t{0});
  const std::uint8_t truncated = response.truncated ? 1 : 0;
  net::Rows rows;
  rows.samples = {response.sample};
  rows.add(net::make_column("sequence_ids", DType::i32, lengths,
                            response.sequence_ids.data()));
  rows.add(net::make_column("loss_mask", DType::u8, lengths, mask.data()));
  rows.add(net::make_column("logprobs", DType::f32, lengths,
                            response.logprobs.data()));
  rows.add(net::make_column("truncated", DType::u8, {1}, &truncated));
  return rows;
}

/// Returns events that pass finished responses on while others are being made:
/// those of the last slice, which are whole.
models::GenerateEvents offering(const Shard& shard, const plans::Call& call,
                                std::span<const ChunkRun> chunks) {
  if (!gives_results(shard))
    return {};
  std::vector<SampleStream> streams;
  for (const auto& chunk : chunks)
    streams.push_back(chunk.order.slice.is_last()
                        ? stream_of(shard.worker, call, chunk.step)
                        : SampleStream{});
  return {.on_sample = [=](const models::GeneratedSample& response) {
    if (const auto& offer = streams[response.batch])
      offer(rows_of_one(response));
  }};
}

models::GenerateOptions options_of(WorkerContext& worker,
                                   const plans::Call& call) {
  const auto room = worker.run.rooms.find(call.name);
  auto options = generate_options(
    worker.run.settings, call, worker.run.shapes.at(call.role),
    room == worker.run.rooms.end() ? plans::ResponseRoom{} : room->second);
  options.seed += own_noise(worker, call);
  if (options.stop_ids.empty() && worker.data.tokenizer().eos_id() >= 0)
    options.stop_ids = {worker.data.tokenizer().eos_id()};
  if (const auto& stop = worker.run.settings.rollout.stop; !stop.empty())
    options.stop_texts
      = std::make_shared<models::StopTexts>(worker.data.tokenizer(), stop);
  return options;
}

using OnRows = std::function<void(std::size_t chunk, net::Rows rows)>;

/// Replays recorded responses instead of generating; actors that led the
/// conversations are not called.
void replay_responses(Shard& shard, const plans::Call& call,
                      std::span<const ChunkRun> chunks, const OnRows& on_rows) {
  const auto recorded = [&](const ChunkRun& chunk) {
    const auto rows
      = shard.worker->data.replay()->rows(chunk.step, chunk.rows.samples);
    return rename_in(call, net::select_keys(rows, call.writes));
  };
  for (std::size_t i = 0; i < chunks.size(); ++i)
    on_rows(i, gives_results(shard) ? recorded(chunks[i]) : net::Rows{});
}

/// Returns the batches of chunks whose `rows` are named as the call's function
/// knows them.
std::vector<models::ResponseBatch> batches_of(std::span<const ChunkRun> chunks,
                                              std::span<const net::Rows> rows,
                                              std::int64_t max_new_tokens) {
  std::vector<models::ResponseBatch> batches;
  for (std::size_t i = 0; i < chunks.size(); ++i)
    batches.push_back(
      {&rows[i], chunks[i].step,
       plans::slice_limit(max_new_tokens, chunks[i].order.slice)});
  return batches;
}

/// Computes what the call writes of each chunk, empty if another device writes
/// it.
void make_responses(Shard& shard, const plans::Call& call,
                    std::span<const ChunkRun> chunks,
                    std::span<const net::Rows> rows, const OnRows& on_rows) {
  WorkerContext& worker = *shard.worker;
  const auto step = chunks.front().step;
  if (!worker.run.settings.run.replay.empty() && !call.evaluates
      && !call.greedy)
    return replay_responses(shard, call, chunks, on_rows);
  auto context = run_context(shard, step);
  const auto options = options_of(worker, call);
  const auto* user = find_user_entry(call.fn);
  if (user != nullptr || is_led_by_agents(call)) {
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const LedRun run{call,
                       rows[i],
                       options,
                       context,
                       chunks[i].order.version,
                       stream_of(shard.worker, call, step)};
      on_rows(i, user != nullptr ? converse(shard, *user, run)
                                 : converse_with_agents(shard, run));
    }
    return;
  }
  auto events = offering(shard, call, chunks);
  events.on_batch = [&](std::size_t i, net::Rows made) {
    on_rows(i, gives_results(shard) ? std::move(made) : net::Rows{});
  };
  const auto batches = batches_of(chunks, rows, options.max_new_tokens);
  if (is_served(shard, call))
    generate_served(shard, chunks.front().order.version, batches, options,
                    context, events);
  else
    shard.engine->generate(batches, options, context, events);
}

/// Returns what metrics tell of the versions of a sliced call's whole
/// responses: tokens by older weights than the newest of their step, and the
/// mean lag of a token.
models::MetricSums sums_of_versions(const Shard& shard, const plans::Call& call,
                                    StepId step, const net::Rows& responses) {
  models::MetricSums sums;
  const auto& run = shard.worker->run;
  const auto spans = plans::version_spans(run.plan, call.name, step,
                                          run.settings.rollout.max_new_tokens);
  for (const auto& column : responses.columns) {
    if (call.argument(column.key) != "loss_mask")
      continue;
    const auto mask = column.as<std::uint8_t>();
    const auto offsets = column.offsets();
    for (std::size_t i = 0; i < responses.num_samples(); ++i) {
      const auto own = mask.subspan(offsets[i], column.lengths[i]);
      const auto tokens = std::ranges::count(own, std::uint8_t{1});
      sums.add_total("rollout/partial_tokens",
                     static_cast<double>(plans::older_tokens(spans, tokens)));
      sums.add("training/lag_mean",
               static_cast<double>(plans::lag_of_tokens(spans, step, tokens)),
               static_cast<double>(tokens));
    }
  }
  return sums;
}

/// Times and memory of chunks that end one by one: each lasts from the end of
/// the one before it, both in its result and in the trace.
class ChunkMeter {
public:
  ChunkMeter(const Shard& shard, const plans::Call& call, StepId step,
             std::size_t num_chunks)
    : shard_(shard),
      name_(trace::name(call.name)),
      step_(step),
      left_(num_chunks) {
    begin();
  }

  void end(RunDone& done) {
    span_.reset();
    done.begin_ns = begin_ns_;
    done.busy_ns = trace::now_ns() - begin_ns_;
    done.peaks = peaks_of(shard_);
    if (--left_ > 0)
      begin();
  }

private:
  void begin() {
    begin_ns_ = trace::now_ns();
    begin_peak(shard_);
    span_.emplace(shard_.device->track(), name_, step_.value);
  }

  const Shard& shard_;
  trace::Name name_;
  StepId step_;
  std::size_t left_;
  std::uint64_t begin_ns_ = 0;
  std::optional<trace::Span> span_;
};

/// Stores what a chunk or slice has made.
RunDone keep_responses(Shard& shard, const plans::Call& call,
                       const ChunkRun& chunk, net::Rows responses) {
  const auto& slice = chunk.order.slice;
  const auto part = plans::slice_of(call, slice);
  responses = rename_out(part, std::move(responses));
  trace_rows(shard.device->track(), "reads", chunk.step, chunk.rows);
  trace_rows(shard.device->track(), "writes", chunk.step, responses);
  models::MetricSums sums;
  if (slice.is_cut() && slice.is_last() && !call.greedy)
    sums = sums_of_versions(shard, call, chunk.step, responses);
  if (shard.served && is_served(shard, call))
    add_server_sums(shard.served->take_report(), sums);
  if (is_led_by_agents(call) && !call.evaluates && !call.greedy)
    add_agent_sums(*shard.worker, sums);
  auto done
    = stash_outputs(*shard.worker, chunk.step, part, std::move(responses));
  done.sums = to_parts(sums);
  return done;
}

} // namespace

void generate_chunks(Shard& shard, const std::string& who,
                     const std::vector<ChunkRun>& chunks) {
  const plans::Call& call
    = shard.worker->run.workflow.call(chunks.front().order.call);
  std::vector<bool> is_done(chunks.size(), false);
  const auto settle = [&](std::size_t i, Result<RunDone> result) {
    is_done[i] = true;
    chunks[i].done(std::move(result));
  };
  try {
    ChunkMeter meter(shard, call, chunks.front().step, chunks.size());
    std::vector<net::Rows> rows;
    for (const auto& chunk : chunks)
      rows.push_back(
        rename_in(plans::slice_of(call, chunk.order.slice), chunk.rows));
    make_responses(
      shard, call, chunks, rows, [&](std::size_t i, net::Rows responses) {
        auto done
          = keep_responses(shard, call, chunks[i], std::move(responses));
        meter.end(done);
        settle(i, std::move(done));
      });
  } catch (const std::exception& error) {
    if (!std::ranges::count(is_done, false)) // its devices met after them
      log::actors.error(who + ", after the last response: " + error.what());
    for (std::size_t i = 0; i < chunks.size(); ++i)
      if (!is_done[i])
        settle(i, to_failure(error, who));
  }
}

} // namespace troupe::actors
