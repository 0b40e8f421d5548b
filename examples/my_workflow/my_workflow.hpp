// The workflow my_workflow: responses of a desired length get more weight in
// training. Change what `judge` measures, and it trains towards something else.
#pragma once

#include <troupe/actor.hpp> // actors: Sample, Future, Task, ProcessPool
#include <troupe/app.hpp>   // Key, Workflow, Section, App
#include <troupe/loss.hpp>  // losses: tensors and their functions

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

namespace my_workflow {

// Keys are the dataflow: each is written by one call and read by any number.
constexpr troupe::Key<float> score{"score"};
constexpr troupe::Key<float> weight{"weight"};

/// The section `my_workflow:` of the YAML.
struct Settings {
  int letters = 60;
  float tolerance = 20.F;
};

/// State of an actor's instance. Each worker has one, and only its own thread
/// accesses it.
struct Judge {
  static constexpr const char* name = "judge";
  std::size_t samples = 0;
};
using Self = troupe::SampleActor::stateful_pointer<Judge>;

/// Scores a response: 1 at the desired number of letters, towards 0 away from
/// it.
inline troupe::SampleActor::behavior_type judge(Self self, Settings settings) {
  return {[=](troupe::run_atom, troupe::Sample sample) {
    ++self->state.samples;
    const auto letters
      = static_cast<int>(sample[troupe::keys::response].size());
    const auto off = static_cast<float>(letters - settings.letters);
    sample.set(score, std::exp(-std::abs(off) / settings.tolerance));
    return sample;
  }};
}

/// Returns each response's score minus the mean over the responses to its
/// prompt.
inline std::vector<float> above_mean(std::span<const float> scores) {
  const auto sum = std::accumulate(scores.begin(), scores.end(), 0.F);
  std::vector<float> above(scores.begin(), scores.end());
  for (auto& value : above)
    value -= sum / static_cast<float>(scores.size());
  return above;
}

/// Returns -sum_t weight_t log p_t / number of the model's own tokens.
inline troupe::Loss weighted_nll(const troupe::TrainBatch& b) {
  const at::Tensor nll = -at::sum(b[weight] * b.logprobs() * b.mask());
  return {.loss = nll / b.denominator(), .sums = {{"nll", nll}}};
}

inline troupe::Workflow workflow() {
  troupe::Workflow w{"my_workflow", "train towards answers of a wanted length"};
  w.role("actor", troupe::trained);
  w.generate("actor_gen", "actor");
  w.each("judge", judge, reads(troupe::keys::response), writes(score));
  w.groups("above_mean", above_mean, reads(score), writes(weight));
  w.train("actor_train", "actor", weighted_nll, reads(weight));
  w.metric("my_workflow/score", score);
  return w;
}

inline troupe::App app() {
  auto section = troupe::Section<Settings>("my_workflow")
                   .field("letters", &Settings::letters, "Wanted length")
                   .at_least(1)
                   .field("tolerance", &Settings::tolerance,
                          "Letters off at which an answer scores 1/e")
                   .at_least(1);
  return troupe::App{}
    .add(section)
    .spawnable("judge", judge, section)
    .add(workflow());
}

} // namespace my_workflow
