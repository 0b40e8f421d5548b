// Training as shared/bench/hf_train.py measures its packed variant: one whole
// optimizer step (forward, cross entropy of every token, backward, AdamW) on a
// packed block of `batch` sequences of `seq_len` random tokens. `--plan
// tensor`: on as many tensor peers as threads, instead of one device with all
// threads.
#include "config/model/model_shape.hpp"
#include "models/engine/engine.hpp"
#include "models/parallel/parameters.hpp"
#include "net/base/rows.hpp"
#include "net/collectives/host_collectives.hpp"

#include <ATen/Parallel.h>

#include "bench.hpp"
#include "tests/support/temp_folder.hpp"

#include <deque>
#include <random>
#include <thread>

namespace troupe::bench {
namespace {

using models::Engine;

// An engine over random weights; its folder holds config.json alone.
std::unique_ptr<Engine> random_engine(const ModelShape& shape,
                                      double learning_rate, DType dtype,
                                      const Strategy& strategy,
                                      std::uint32_t device) {
  const support::TempFolder folder;
  support::write_text(folder / "config.json", print_hf_config(shape));
  Engine::Spec spec;
  spec.folder = folder.path();
  spec.role = "actor";
  spec.trainable = true;
  spec.dtype = dtype;
  spec.strategy = strategy;
  spec.where = coordinate_of(strategy, device);
  spec.optimizer.lr = learning_rate;
  spec.optimizer.schedule = "constant";
  spec.optimizer.warmup = 0;
  auto engine = std::make_unique<Engine>(std::move(spec));
  std::mt19937 random(20240607);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  models::Parameters& parameters = engine->parameters();
  for (std::size_t i = 0; i < parameters.shapes().size(); ++i) {
    const ParameterShape& own = parameters.shapes()[i];
    float* data
      = parameters.plane(models::Plane::weight).data() + parameters.offset(i);
    for (std::int64_t j = 0; j < own.num_elements(); ++j)
      data[j] = own.vector ? 1.0F : normal(random);
  }
  engine->weights_changed();
  return engine;
}

// A replica whose devices are threads of this process.
class Replica {
public:
  Replica(const ModelShape& shape, const Options& options, double rate) {
    const bool tensor = options.plan == "tensor";
    const auto peers = static_cast<std::uint32_t>(tensor ? options.threads : 1);
    if (tensor)
      at::set_num_threads(1);
    for (std::uint32_t i = 0; i < peers; ++i) {
      engines_.push_back(
        random_engine(shape, rate, dtype_of(options), {.tp = peers}, i));
      net::GroupSpec group{.name = "tp", .index = i};
      group.members.resize(peers);
      if (peers > 1)
        contexts_.emplace_back().groups.tp
          = net::make_host_collectives(group, registry_);
      else
        contexts_.emplace_back();
    }
  }

  void train(const models::TrainSpec& spec, const net::Rows& rows) {
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < engines_.size(); ++i)
      others.emplace_back(
        [&, i] { engines_[i]->train(spec, rows, contexts_[i]); });
    engines_[0]->train(spec, rows, contexts_[0]);
    for (std::thread& other : others)
      other.join();
  }
  std::uint64_t optimizer_steps() const {
    return engines_[0]->optimizer_steps();
  }

private:
  net::GroupRegistry registry_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::deque<models::RunContext> contexts_;
};

net::Rows random_block(std::int64_t batch, std::int64_t length,
                       std::int64_t vocab_size) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int32_t> token(
    3, static_cast<std::int32_t>(vocab_size) - 1);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(batch * length));
  for (std::int32_t& id : ids)
    id = token(random);
  net::Rows rows;
  for (std::int64_t i = 0; i < batch; ++i)
    rows.samples.emplace_back(static_cast<std::uint64_t>(i));
  const std::vector<std::uint32_t> lengths(static_cast<std::size_t>(batch),
                                           static_cast<std::uint32_t>(length));
  rows.add(net::make_column("sequence_ids", DType::i32, lengths, ids.data()));
  return rows;
}

} // namespace

nlohmann::json bench_train(const Options& options) {
  const auto card = read_card(options);
  const ModelShape shape = shape_of(card);
  const auto& plan = card.at("train");
  const std::int64_t batch = plan.at("batch");
  const std::int64_t length = plan.at("seq_len");
  Replica replica(shape, options, plan.at("lr"));
  const net::Rows rows = random_block(batch, length, shape.vocab_size);
  models::TrainSpec spec;
  spec.fn = "sft_loss";
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
  const double flops
    = 3
      * forward_flops(shape, tokens,
                      static_cast<double>(batch * length * length));
  return {{"tok_s", rate["median"]},
          {"tok_s_min", rate["min"]},
          {"tok_s_max", rate["max"]},
          {"n", options.runs},
          {"step_s", summary(seconds)},
          {"gflops", 1e-9 * flops / summary(seconds)["median"].get<double>()},
          {"tokens", tokens},
          {"plan", options.plan},
          {"optimizer_steps", replica.optimizer_steps()}};
}

} // namespace troupe::bench
