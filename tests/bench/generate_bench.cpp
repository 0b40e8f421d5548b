// Generation as shared/bench/hf_generate.py measures it: prompts of one length,
// a fixed number of new tokens, sampling at temperature 1 without filters.
// prefill = time of one new token; decode = (t(N) - t(1)) / (N - 1) a step,
// with the fastest t(1): a prefill that was disturbed would flatter decoding.
#include "models/generate/generator.hpp"

#include "bench.hpp"
#include "random_engine.hpp"

#include <algorithm>
#include <random>

namespace troupe::bench {
namespace {

using models::GenerateOptions;
using models::Generator;
using models::Parameters;
using models::Plane;

nlohmann::json measure_batch(Generator& generator, const net::Rows& prompts,
                             std::int64_t prompt_len, std::int64_t new_tokens,
                             const Options& bench) {
  const models::RunContext context;
  const auto generate = [&](std::int64_t count) {
    GenerateOptions options;
    options.max_new_tokens = count;
    options.ignore_eos = true;
    return seconds_of(bench, [&] { generator.run(prompts, options, context); });
  };
  generate(new_tokens); // warms up: packed weights, buffers
  std::vector<double> first;
  std::vector<double> whole;
  const auto batch = static_cast<double>(prompts.num_samples());
  for (int i = 0; i < bench.runs; ++i) {
    first.push_back(generate(1));
    whole.push_back(generate(new_tokens));
  }
  std::vector<double> rates;
  for (const double seconds : whole)
    rates.push_back(batch * static_cast<double>(new_tokens - 1)
                    / (seconds - *std::ranges::min_element(first)));
  const auto prefill = summary(first);
  return {{"B", prompts.num_samples()},
          {"tokens", batch * static_cast<double>(new_tokens)},
          {"prefill_tok_s", batch * static_cast<double>(prompt_len)
                              / prefill["median"].get<double>()},
          {"decode_tok_s", summary(rates)},
          {"e2e_s", summary(whole)}};
}

} // namespace

nlohmann::json bench_generate(const Options& options) {
  const auto card = read_card(options);
  const ModelShape shape = shape_of(card);
  Parameters parameters(troupe::parameters(shape), false);
  std::mt19937 random(20240607);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  for (float& x : parameters.plane(Plane::weight))
    x = normal(random);
  auto weights = models::weights_of(shape, parameters, Plane::weight);
  weights.operands = dtype_of(options);
  Generator generator(shape, weights);

  const auto& plan = card.at("generate");
  nlohmann::json rows = nlohmann::json::array();
  for (const std::int64_t batch :
       plan.at("batch_sizes").get<std::vector<std::int64_t>>()) {
    const std::int64_t prompt_len = plan.at("prompt_len");
    rows.push_back(measure_batch(
      generator, random_rows("prompt_ids", batch, prompt_len, shape.vocab_size),
      prompt_len, plan.at("new_tokens"), options));
  }
  return {{"tok_s", rows.back()["decode_tok_s"]["median"]},
          {"tok_s_min", rows.back()["decode_tok_s"]["min"]},
          {"tok_s_max", rows.back()["decode_tok_s"]["max"]},
          {"n", options.runs},
          {"rows", rows}};
}

} // namespace troupe::bench
