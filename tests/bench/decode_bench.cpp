// Decoding of an engine as a run has it, on the device that the command line
// names: prompts of one length, a fixed number of new tokens, no filters. A
// step's time is (t(N) - t(1)) / (N - 1) with the fastest t(1), so that neither
// prompts nor the preparation of weights, which an engine does in each call,
// count; the generator stays, so that a GPU's graphs are captured once. Beside
// it the bytes that a step cannot avoid to read.
#include "config/model/model_shape.hpp"
#include "models/generate/generate_options.hpp"

#include "bench.hpp"
#include "prediction.hpp"
#include "random_engine.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace troupe::bench {
namespace {

/// Slots are limited by `max_sequences` alone.
constexpr std::uint64_t unlimited_bytes = std::uint64_t{1} << 50;

/// Returns the bytes of the weights that each token is multiplied by: all but
/// the rows of an embedding that is not the head as well.
double read_bytes(const ModelShape& shape, DType operands) {
  ModelShape layers_and_head = shape;
  layers_and_head.tied_embeddings = true;
  return static_cast<double>(weight_bytes(layers_and_head, operands));
}

/// Returns keys and values of a token in all layers.
std::int64_t cached_numbers(const ModelShape& shape) {
  return 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim;
}

/// Returns what the cost model expects, measured as the benchmark measures;
/// nothing on a device that it has no numbers of.
std::optional<double> predicted_ms(const Options& options,
                                   const ModelShape& shape, std::int64_t batch,
                                   std::int64_t prompt,
                                   std::int64_t new_tokens) {
  const KnownGpu* gpu = known_gpu(options);
  if (gpu == nullptr)
    return std::nullopt;
  const auto seconds = [&](std::int64_t count) {
    return predicted_call_s(
      *gpu, options, shape,
      {.settings
       = {"workflow=grpo", "algorithm.kl_in=none", "reward.kind=rule",
          "reward.rule=length:1", "algorithm.mini_batches=1",
          "data.batch_size=1", // of one prompt: GRPO has no single responses
          "rollout.n=" + std::to_string(std::max<std::int64_t>(batch, 2)),
          "data.max_prompt_tokens=" + std::to_string(prompt),
          "rollout.max_new_tokens=" + std::to_string(count)},
       .kind = plans::CallKind::generate});
  };
  return 1e3 * (seconds(new_tokens) - seconds(1))
         / static_cast<double>(new_tokens - 1);
}

} // namespace

nlohmann::json bench_decode(const Options& options) {
  const auto card = read_card(options);
  const ModelShape shape = shape_of(card, options);
  const auto& plan = card.at("generate");
  const std::int64_t batch
    = size_or(options.sizes.batch, plan.at("batch_sizes").back());
  const std::int64_t prompt
    = size_or(options.sizes.tokens, plan.at("prompt_len"));
  const std::int64_t new_tokens = std::max<std::int64_t>(
    2, size_or(options.sizes.new_tokens, plan.at("new_tokens")));
  const auto engine = random_engine(shape, options, {.keeps_generator = true});
  const net::Rows prompts
    = random_rows("prompt_ids", batch, prompt, shape.vocab_size);
  models::RunContext context;
  const auto generate_s = [&](std::int64_t count) {
    models::GenerateOptions generate;
    generate.max_new_tokens = count;
    generate.ignore_eos = true;
    generate.max_sequences = batch;
    generate.kv_cache_bytes = unlimited_bytes;
    return seconds_of(options,
                      [&] { engine->generate(prompts, generate, context); });
  };
  generate_s(new_tokens); // warms up: kernels that are loaded, buffers
  std::vector<double> first;
  std::vector<double> whole;
  for (int i = 0; i < options.runs; ++i) {
    first.push_back(generate_s(1));
    whole.push_back(generate_s(new_tokens));
  }
  std::vector<double> steps;
  for (const double seconds : whole)
    steps.push_back(1e3 * (seconds - *std::ranges::min_element(first))
                    / static_cast<double>(new_tokens - 1));
  if (*std::ranges::min_element(steps) <= 0) // it would be below any aim
    throw std::runtime_error("new tokens took no longer than the first: try a "
                             "larger --new-tokens");
  nlohmann::json document{{"batch", batch},
                          {"prompt_tokens", prompt},
                          {"new_tokens", new_tokens},
                          {"layers", shape.num_layers},
                          {"parameters", num_parameters(shape)},
                          {"read_bytes", read_bytes(shape, dtype_of(options))},
                          {"cached_numbers_a_token", cached_numbers(shape)},
                          {"first_token_s", summary(first)}};
  add_headline(document, "ms_token", steps);
  document["tok_s"]
    = 1e3 * static_cast<double>(batch) / document["ms_token"].get<double>();
  if (const auto predicted
      = predicted_ms(options, shape, batch, prompt, new_tokens))
    document["predicted"] = *predicted;
  return document;
}

} // namespace troupe::bench
