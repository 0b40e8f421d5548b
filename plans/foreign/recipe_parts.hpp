// Steps that the readers of several systems share: parts of a layout, sizes of
// batches, the algorithm in our words.
#pragma once

#include "plans/foreign/foreign_reader.hpp"

namespace troupe::plans {

/// Degrees of a model's training; `zero` counts the sharded states: 0 to 3.
struct TrainDegrees {
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
  int zero = 0;
};
/// Returns a part on `count` devices. Throws ConfigError of the reader for
/// `keys` if they cannot be cut so.
LayoutPart training_part(const ForeignReader& reader, ForeignKeys keys,
                         std::uint32_t first, std::uint32_t count,
                         TrainDegrees degrees);
/// Returns a model that is not trained where `trained` is: without an optimizer
/// it is sharded only where its weights are.
LayoutPart frozen_part(LayoutPart trained);
/// The same for an engine of `tp * pp` devices, as often as there are devices.
LayoutPart generation_part(const ForeignReader& reader, ForeignKeys keys,
                           std::uint32_t first, std::uint32_t count,
                           std::uint32_t tp, std::uint32_t pp = 1);

/// Sizes of a step.
struct StepSizes {
  std::int64_t prompts = 1;
  std::int64_t samples_a_prompt = 1;
  std::int64_t samples_an_update = 0; ///< 0: one update a step
  std::int64_t max_prompt = 512;
  std::int64_t max_response = 512;

  std::int64_t sequence() const {
    return max_prompt + max_response;
  }
};
/// Sets data.batch_size, rollout.n, algorithm.mini_batches and lengths; rounds
/// the number of updates down, at least one.
void set_sizes(Recipe& recipe, const StepSizes& sizes);

/// Sets workflow and algorithm.advantage from a system's word for it (gae,
/// grpo, rloo, reinforce++, ...); an unknown one counts as grpo, with a note.
void set_estimator(Recipe& recipe, const std::string& word, const Place& place);

/// Sets where the KL counts: "loss", "reward" or "none".
void set_kl(Recipe& recipe, const std::string& where);

/// Sets the lag of generation; one beyond what plans have is planned as the
/// longest, with a note.
void set_lag(Recipe& recipe, std::int64_t steps);

/// Sets models.ROLE.path.
void set_model(Recipe& recipe, const std::string& role,
               const std::string& name);

} // namespace troupe::plans
