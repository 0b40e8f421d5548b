#include "actors/worker/shard_server.hpp"

#include "actors/worker/device_jobs.hpp"
#include "actors/worker/shard_groups.hpp"
#include "actors/worker/shard_memory.hpp"
#include "actors/worker/weight_moves.hpp"
#include "actors/worker/weight_route.hpp"
#include "config/trace/trace_at.hpp"
#include "models/servers/sglang_start.hpp"
#include "models/servers/vllm_plugin.hpp"
#include "models/servers/vllm_start.hpp"
#include "plans/check/plan_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

/// Most that log-probabilities of a server may differ from ours: in fp32 the
/// order of sums, for which 1e-5 was seen; else roundings of every layer.
constexpr double most_gap_fp32 = 1e-3;
constexpr double most_gap_bf16 = 0.25;
/// Tokens that a server must take for the check of its weights.
constexpr std::int64_t least_tokens = 32;
/// Tokens beside a prompt and its response that SGLang keeps free.
constexpr std::int64_t spare_tokens = 3;

bool is_sglang(const Shard& shard) {
  return shard.worker->run.settings.rollout.engine.kind == "sglang";
}

/// Returns the longest prompt with its response.
std::int64_t most_tokens(const Settings& settings, const ModelShape& shape) {
  const auto most = std::int64_t{settings.data.max_prompt_tokens}
                    + settings.rollout.max_new_tokens + spare_tokens;
  return std::min(std::max(most, least_tokens), shape.context_tokens());
}

std::filesystem::path server_folder(const Shard& shard) {
  return std::filesystem::absolute(shard.worker->run.folder / "servers"
                                   / std::to_string(shard.rank.value));
}

models::ServerProgram started_program(const Shard& shard, std::string name,
                                      std::string port, bool bf16) {
  const auto& run = shard.worker->run;
  const auto& role = shard.replica.role;
  const auto folder = server_folder(shard);
  const models::ServerStart start{
    .name = std::move(name),
    .command = run.settings.rollout.engine.server_command,
    .model
    = run.files->local(run.settings.models.at(role).path, ModelFiles::all),
    .plugin = folder / "plugin",
    .log = folder / "server.log",
    .port = std::move(port),
    .most_tokens = most_tokens(run.settings, run.shapes.at(role)),
    .bf16 = bf16,
    .sampled_logprobs = run.settings.rollout.logprobs == "sampled",
    .on_cpu = run.settings.cluster.device != "gpu",
    .over_nccl = run.settings.rollout.engine.weights_over == "nccl",
    .tp = shard.replica.strategy.tp};
  std::filesystem::create_directories(folder); // for the log
  if (is_sglang(shard))
    return models::sglang_program(start);
  models::write_vllm_plugin(start.plugin);
  return models::vllm_program(start);
}

/// Returns how the shard's server is started on this host.
models::ServerSpec started_spec(const Shard& shard, const std::string& name,
                                bool bf16) {
  // two devices with one port would take the neighbour's server for their own
  const auto port = net::free_local_port(
    shard.rank.value, shard.worker->run.plan.cluster.num_devices());
  const std::string host = "127.0.0.1";
  const auto& settings = shard.worker->run.settings;
  return {.program = started_program(shard, name, port, bf16),
          .url = {host, port, "/"},
          .offer
          = weight_offer(settings, place_of_server(settings, name, host))};
}

/// Returns the server that the settings name for the shard's group.
models::ServerSpec named_spec(const Shard& shard, const std::string& name) {
  const auto& settings = shard.worker->run.settings;
  const auto& address = settings.rollout.engine.servers.at(shard.where.dp);
  const auto url = *parse_http_url(address);
  return {.program = {.name = name + " at " + address},
          .url = url,
          .offer = weight_offer(settings,
                                place_of_server(settings, address, url.host))};
}

/// Returns whether the shard has its group's server.
bool has_server(const Shard& shard) {
  return shard.where.tp == 0;
}

models::ServerSpec server_spec(const Shard& shard, bool bf16) {
  const auto name
    = fmt::format("{} server of device {}",
                  is_sglang(shard) ? "SGLang" : "vLLM", shard.rank.value);
  if (!has_server(shard))
    return {.program = {.name = name}};
  const auto& settings = shard.worker->run.settings;
  auto server = settings.rollout.engine.servers.empty()
                  ? started_spec(shard, name, bf16)
                  : named_spec(shard, name);
  server.kind
    = is_sglang(shard) ? models::ServerKind::sglang : models::ServerKind::vllm;
  server.weights = server_folder(shard) / "weights";
  server.broadcast = weight_broadcast(settings, gpu_of(shard));
  if (const auto most = settings.rollout.max_sequences)
    server.connections = static_cast<std::size_t>(*most);
  return server;
}

} // namespace

models::ServedGeneration& server_of(Shard& shard) {
  if (shard.served)
    return *shard.served;
  const bool bf16
    = plans::product_dtype(shard.worker->run.settings, shard.replica.role)
      == DType::bf16;
  models::ServedSpec spec{.server = server_spec(shard, bf16),
                          .most_gap = bf16 ? most_gap_bf16 : most_gap_fp32};
  if (shard.replica.strategy.tp > 1)
    spec.gather
      = [&shard](std::span<std::byte> whole) { gather_weights(shard, whole); };
  shard.served = std::make_unique<models::ServedGeneration>(std::move(spec));
  return *shard.served;
}

bool is_served(const Shard& shard, const plans::Call& call) {
  return !shard.worker->run.settings.rollout.engine.is_own() && !call.evaluates;
}

MoveDone update_server(Shard& shard, StepId step, Version version) {
  const trace::Span span{shard.device->track(), trace::name("move"),
                         step.value};
  MoveDone done;
  done.begin_ns = trace::now_ns();
  begin_peak(shard);
  auto context = run_context(shard, step);
  auto& server = server_of(shard);
  if (has_server(shard))
    done.bytes = server.make_ready(*shard.engine, to_string(version), context);
  else
    server.assist(*shard.engine, to_string(version), {}, context, {});
  done.busy_ns = trace::now_ns() - done.begin_ns;
  done.peaks = peaks_of(shard);
  if (shard.worker->run.settings.run.check_moves)
    done.checksum = shard.engine->checksum();
  return done;
}

void generate_served(Shard& shard, Version version,
                     std::span<const models::ResponseBatch> batches,
                     const models::GenerateOptions& options,
                     models::RunContext& context,
                     const models::GenerateEvents& events) {
  auto& server = server_of(shard);
  if (has_server(shard))
    server.generate(*shard.engine, to_string(version), batches, options,
                    context, events);
  else
    server.assist(*shard.engine, to_string(version), batches, context, events);
}

void add_server_sums(const models::ServedReport& report,
                     models::MetricSums& sums) {
  sums.add_total("rollout/engine_restarts",
                 static_cast<double>(report.restarts));
  if (!report.gap)
    return;
  sums.add_max("rollout/engine_logprob_gap", *report.gap);
  sums.add_max("rollout/engine_update_s", report.update_s);
  const double gigabytes = static_cast<double>(report.updated_bytes) / 1e9;
  sums.add_total("rollout/engine_update_gb", gigabytes);
  sums.add("rollout/engine_update_gb_per_s", gigabytes, report.update_s);
}

} // namespace troupe::actors
