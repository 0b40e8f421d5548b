// The parts that tests of generation by a server have in common: a random model
// in a folder, an engine that has it, and the rows that a server makes of
// prompts.
#pragma once

#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/parallel/parameters.hpp"
#include "models/servers/served_generation.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/stand_in_servers.hpp"
#include "tests/support/temp_folder.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

class ServedTest : public ::testing::Test {
protected:
  ServedTest() {
    write_random_model(folder / "model", small_shape(), 1);
    load(actor_of(folder / "model"));
    options.max_new_tokens = 6;
    options.stop_ids = {3};
  }
  void load(Engine::Spec spec) {
    engine = std::make_unique<Engine>(std::move(spec));
    engine->load_weights();
  }
  std::span<const std::byte> weights() const {
    return std::as_bytes(
      std::as_const(engine->parameters()).plane(models::Plane::weight));
  }
  /// Changes all weights, so that they are not those of the files any more.
  void change_weights() {
    for (float& value : engine->parameters().plane(models::Plane::weight))
      value *= 1.5F;
    engine->weights_changed();
  }
  net::Rows generate(models::ServedGeneration& served,
                     const std::string& version) {
    return generate_of(*engine, served, version);
  }
  net::Rows generate_of(Engine& of, models::ServedGeneration& served,
                        const std::string& version) {
    const std::vector<models::ResponseBatch> batches{
      {&prompts, StepId{1}, options.max_new_tokens}};
    net::Rows made;
    served.generate(of, version, batches, options, context,
                    {.on_batch = [&](std::size_t, net::Rows rows) {
                      made = std::move(rows);
                    }});
    return made;
  }
  std::string failure_of(models::ServedGeneration& served,
                         const std::string& version) {
    try {
      generate(served, version);
    } catch (const FailureError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  std::string failure_of(const models::ServedSpec& server) {
    models::ServedGeneration served(server);
    return failure_of(served, "1");
  }
  /// Returns the largest difference of the log-probabilities of the rows' own
  /// tokens from those that the engine computes of them.
  double gap_of(const net::Rows& rows) {
    const auto ours = engine->infer("logprobs", rows, context);
    const auto here = ours.at("logprobs").as<float>();
    const auto there = rows.at("logprobs").as<float>();
    const auto mask = rows.at("loss_mask").as<std::uint8_t>();
    double gap = 0;
    for (std::size_t i = 0; i < here.size(); ++i)
      if (mask[i] != 0)
        gap = std::max(gap, std::abs(double{here[i]} - double{there[i]}));
    return gap;
  }

  const support::TempFolder folder;
  std::unique_ptr<Engine> engine;
  const net::Rows prompts = prompt_rows({{4, 5, 6}, {7, 8}, {4, 5, 6}});
  models::GenerateOptions options;
  RunContext context;
};

} // namespace troupe::testing
