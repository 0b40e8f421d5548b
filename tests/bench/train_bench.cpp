// Training as shared/bench/hf_train.py measures its packed variant: one whole
// optimizer step (forward, cross entropy of every token, backward, AdamW) on a
// packed block of `batch` sequences of `seq_len` random tokens.
#include "config/model_shape.hpp"
#include "models/engine.hpp"
#include "models/parameters.hpp"
#include "net/rows.hpp"

#include "bench.hpp"

#include <fstream>
#include <random>

namespace troupe::bench {
namespace {

using models::Engine;

// An engine over random weights; its folder holds config.json alone.
std::unique_ptr<Engine> random_engine(const ModelShape& shape,
                                      double learning_rate) {
  std::string name
    = (std::filesystem::temp_directory_path() / "troupe-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::runtime_error("cannot make a folder like " + name);
  const std::filesystem::path folder = name;
  std::ofstream(folder / "config.json") << print_hf_config(shape);
  Engine::Spec spec;
  spec.folder = folder;
  spec.role = "actor";
  spec.trainable = true;
  spec.optimizer.lr = learning_rate;
  spec.optimizer.schedule = "constant";
  spec.optimizer.warmup = 0;
  auto engine = std::make_unique<Engine>(std::move(spec));
  std::filesystem::remove_all(folder);
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
  if (options.dtype != "fp32")
    throw std::runtime_error("training is fp32 in this build");
  const auto card = read_card(options);
  const ModelShape shape = shape_of(card);
  const auto& plan = card.at("train");
  const std::int64_t batch = plan.at("batch");
  const std::int64_t length = plan.at("seq_len");
  const auto engine = random_engine(shape, plan.at("lr"));
  const net::Rows rows = random_block(batch, length, shape.vocab_size);
  models::TrainSpec spec;
  spec.fn = "sft_loss";
  spec.mini_batches = {rows.samples};
  models::RunContext context;
  const auto step = [&] { engine->train(spec, rows, context); };
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
          {"optimizer_steps", engine->optimizer_steps()}};
}

} // namespace troupe::bench
