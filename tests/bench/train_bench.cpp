// Training as shared/bench/hf_train.py measures its packed variant: one whole
// optimizer step (forward, cross entropy of every token, backward, AdamW) on a
// packed block of `batch` sequences of `seq_len` random tokens. `--plan
// tensor`: on as many tensor peers as threads, instead of one device with all
// threads; with `--device gpu` these share the GPUs that there are.
#include "config/model/model_shape.hpp"
#include "models/engine/engine.hpp"
#include "net/base/rows.hpp"

#include <ATen/Parallel.h>

#include "bench.hpp"
#include "device_group.hpp"
#include "prediction.hpp"
#include "random_engine.hpp"

#include <deque>

namespace troupe::bench {
namespace {

using models::Engine;

Engine::Spec trained_spec(const Strategy& strategy, std::uint32_t device,
                          double rate) {
  Engine::Spec spec;
  spec.trainable = true;
  spec.strategy = strategy;
  spec.where = coordinate_of(strategy, device);
  spec.optimizer.lr = rate;
  spec.optimizer.schedule = "constant";
  spec.optimizer.warmup = 0;
  return spec;
}

std::uint32_t peers_of(const Options& options) {
  return options.plan == "tensor" ? static_cast<std::uint32_t>(options.threads)
                                  : 1;
}

// A replica whose devices are threads of this process.
class Replica {
public:
  Replica(const ModelShape& shape, const Options& options, double rate) {
    const std::uint32_t peers = peers_of(options);
    if (peers > 1)
      at::set_num_threads(1);
    for (std::uint32_t i = 0; i < peers; ++i) {
      engines_.push_back(
        random_engine(shape, options, trained_spec({.tp = peers}, i, rate)));
      net::GroupSpec group{.name = "tp", .index = i};
      group.members.resize(peers);
      auto& context = contexts_.emplace_back();
      if (peers > 1)
        context.groups.tp = device_group(options, group, registry_);
    }
  }

  void train(const models::TrainSpec& spec, const net::Rows& rows) {
    together(
      static_cast<std::uint32_t>(engines_.size()), registry_,
      [&](std::uint32_t i) { engines_[i]->train(spec, rows, contexts_[i]); });
  }
  std::uint64_t optimizer_steps() const {
    return engines_[0]->optimizer_steps();
  }

private:
  net::GroupRegistry registry_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::deque<models::RunContext> contexts_;
};

/// Adds what only GPUs have: the share of the data sheet's rate, and the step
/// that the cost model expects.
void add_expected(nlohmann::json& document, const Options& options,
                  const ModelShape& shape, std::int64_t batch,
                  std::int64_t length) {
  const auto peers = peers_of(options);
  const KnownGpu* gpu = known_gpu(options, peers);
  if (gpu == nullptr)
    return;
  document["mfu"]
    = document["gflops"].get<double>() * 1e9 / (peers * gpu->dense_flops);
  document["predicted"] = predicted_call_s(
    *gpu, options, shape,
    {.settings = {"workflow=sft", "data.batch_size=" + std::to_string(batch),
                  "data.max_tokens=" + std::to_string(length),
                  std::string("algorithm.recompute=")
                    + (options.recompute ? "true" : "false")},
     .tensor_peers = peers});
}

} // namespace

nlohmann::json bench_train(const Options& options) {
  const auto card = read_card(options);
  const ModelShape shape = shape_of(card, options);
  const auto& plan = card.at("train");
  const std::int64_t batch = size_or(options.sizes.batch, plan.at("batch"));
  const std::int64_t length = size_or(options.sizes.tokens, plan.at("seq_len"));
  Replica replica(shape, options, plan.at("lr"));
  const net::Rows rows
    = random_rows("sequence_ids", batch, length, shape.vocab_size);
  models::TrainSpec spec;
  spec.fn = "sft_loss";
  spec.recompute = options.recompute;
  spec.mini_batches = {rows.samples};
  const auto step = [&] { replica.train(spec, rows); };
  step(); // warms up: buffers
  step();
  std::vector<double> seconds;
  std::vector<double> rates;
  const auto tokens = static_cast<double>(batch * length);
  for (int i = 0; i < options.runs; ++i) {
    seconds.push_back(seconds_of(options, step));
    rates.push_back(tokens / seconds.back());
  }
  const auto rate = summary(rates);
  const double step_s = summary(seconds)["median"];
  const double flops
    = 3
      * forward_flops(shape, tokens,
                      static_cast<double>(batch * length * length));
  nlohmann::json document{{"tok_s", rate["median"]},
                          {"tok_s_min", rate["min"]},
                          {"tok_s_max", rate["max"]},
                          {"n", options.runs},
                          {"step_s", summary(seconds)},
                          {"step_median_s", step_s},
                          {"gflops", 1e-9 * flops / step_s},
                          {"flops", flops},
                          {"parameters", num_parameters(shape)},
                          {"recompute", options.recompute},
                          {"tokens", tokens},
                          {"plan", options.plan},
                          {"optimizer_steps", replica.optimizer_steps()}};
  add_expected(document, options, shape, batch, length);
  return document;
}

} // namespace troupe::bench
