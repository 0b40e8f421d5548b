// Prompts, responses, and a small random model for tests of generation.
#pragma once

#include "models/engine/engine.hpp"
#include "models/generate/generator.hpp"

#include "backend_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <vector>

namespace troupe::testing {

using models::Engine;
using models::GenerateOptions;
using models::Parameters;
using models::Plane;
using models::RunContext;
using models::Weights;
using models::weights_of;
using Ids = std::vector<std::int32_t>;

inline net::Rows prompt_rows(const std::vector<Ids>& prompts,
                             std::uint32_t first_sample = 0) {
  net::Rows rows;
  std::vector<std::uint32_t> lengths;
  Ids packed;
  for (const Ids& prompt : prompts) {
    rows.samples.emplace_back(first_sample + rows.samples.size());
    lengths.push_back(static_cast<std::uint32_t>(prompt.size()));
    packed.insert(packed.end(), prompt.begin(), prompt.end());
  }
  rows.add(net::make_column("prompt_ids", DType::i32, lengths, packed.data()));
  return rows;
}

inline RunContext at_step(std::uint32_t step) {
  RunContext context;
  context.step = StepId(step);
  return context;
}

inline Engine::Spec actor_of(const std::filesystem::path& folder) {
  Engine::Spec spec;
  spec.backend = &troupe::testing::backend_under_test();
  spec.folder = folder;
  spec.role = "actor";
  return spec;
}

/// The result for one sample.
struct Response {
  Ids ids; ///< new tokens
  std::vector<float> logprobs;
  bool truncated = false;
  bool operator==(const Response&) const = default;
};

/// Returns samples of prompts of up to 40 tokens, on both sides of the border
/// of a page of 16.
inline std::vector<Ids> ragged_prompts(std::size_t samples) {
  std::vector<Ids> prompts;
  for (const std::int32_t length : {1, 16, 17, 5, 40, 33}) {
    Ids prompt;
    for (std::int32_t i = 0; i < length; ++i)
      prompt.push_back((length * 7 + i * 3) % 131);
    prompts.insert(prompts.end(), samples, prompt);
  }
  return prompts;
}

/// Returns options whose responses have all lengths: more end early with more
/// stop ids.
inline GenerateOptions ragged_options(std::int32_t num_stop_ids = 4) {
  GenerateOptions options;
  options.max_new_tokens = 24;
  options.seed = 3;
  for (std::int32_t id = 0; id < num_stop_ids; ++id)
    options.stop_ids.push_back(id);
  return options;
}

/// Returns how many responses end before their limit.
inline std::size_t early_ends(const std::vector<Response>& responses) {
  return static_cast<std::size_t>(
    std::ranges::count(responses, false, &Response::truncated));
}

/// Expects the same tokens, with log-probabilities as other kernels have them.
inline void expect_near_responses(const std::vector<Response>& got,
                                  const std::vector<Response>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].ids, want[i].ids) << i;
    EXPECT_EQ(got[i].truncated, want[i].truncated) << i;
    EXPECT_THAT(
      got[i].logprobs,
      ::testing::Pointwise(::testing::FloatNear(1e-4F), want[i].logprobs))
      << i;
  }
}

inline std::vector<Response> responses_of(const net::Rows& rows) {
  const auto ids = rows.at("sequence_ids").as<std::int32_t>();
  const auto mask = rows.at("loss_mask").as<std::uint8_t>();
  const auto logprobs = rows.at("logprobs").as<float>();
  const auto offsets = rows.at("sequence_ids").offsets();
  std::vector<Response> responses(rows.num_samples());
  for (std::size_t i = 0; i < responses.size(); ++i) {
    responses[i].truncated = rows.at("truncated").as<std::uint8_t>()[i] != 0;
    for (auto t = offsets[i]; t < offsets[i + 1]; ++t) {
      if (mask[t] == 0) {
        EXPECT_EQ(logprobs[t], 0.0F);
        continue;
      }
      responses[i].ids.push_back(ids[t]);
      responses[i].logprobs.push_back(logprobs[t]);
    }
  }
  return responses;
}

struct SmallModel {
  ModelShape shape;
  std::unique_ptr<Parameters> parameters;
  Weights weights;

  explicit SmallModel(unsigned seed = 5, std::int64_t head_dim = 12) {
    shape.family = "qwen2";
    shape.vocab_size = 131;
    shape.hidden_size = 48;
    shape.num_layers = 2;
    shape.num_heads = 4;
    shape.num_kv_heads = 2;
    shape.head_dim = head_dim;
    shape.intermediate_size = 80;
    shape.max_positions = 64;
    shape.attention_bias = true;
    shape.eos = {7};
    parameters = std::make_unique<Parameters>(troupe::parameters(shape), false);
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0F, 0.3F);
    for (float& x : parameters->plane(Plane::weight))
      x = normal(random);
    weights = weights_of(shape, *parameters, Plane::weight);
  }
};

} // namespace troupe::testing
