// Rejection-sampling fine-tuning: several responses to each prompt, a program
// that checks them, and training on the best one.
#pragma once

#include <troupe/actor.hpp> // actors: Sample, Future, Task, ProcessPool (CAF)
#include <troupe/app.hpp> // Key, Workflow, Section, App (neither CAF nor torch)
#include <troupe/loss.hpp> // losses: tensors and their operators

// keys: the dataflow, each written by one call
constexpr troupe::Key<float> tool_score{"tool_score"};
constexpr troupe::Key<float> keep{"keep"};

// settings: the `best_of_n:` section of the YAML
struct Settings {
  std::string tool;
  int deadline_ms = 5000;
  int processes = 1;
};

// state: what the actor owns
struct Checker {
  static constexpr const char* name = "checker";
  troupe::ProcessPool tool;
};
using Self = troupe::SampleActor::stateful_pointer<Checker>;

// actor: adds `tool_score` to a sample
/// Checks many samples concurrently, each at its own await.
inline troupe::Task<troupe::Sample> check(Self self, troupe::Sample sample) {
  const std::string verdict
    = co_await self->state.tool.ask(sample[troupe::keys::response]);
  co_return sample.set(tool_score, verdict == "1" ? 1.F : 0.F);
}
inline troupe::SampleActor::behavior_type checker(Self self, Settings s) {
  self->state.tool.start(
    self, s.tool,
    {.processes = s.processes,
     .deadline = std::chrono::milliseconds(s.deadline_ms)});
  return {
    [=](troupe::run_atom, troupe::Sample x) -> caf::result<troupe::Sample> {
      return check(self, std::move(x));
    }};
}

// group: a plain function over the samples of one prompt
/// Returns 1 for the first best, all 0 if none passed.
inline std::vector<float> pick_best(std::span<const float> score) {
  std::vector<float> kept(score.size(), 0.F);
  const auto best = std::ranges::max_element(score);
  kept[static_cast<std::size_t>(best - score.begin())] = *best > 0 ? 1.F : 0.F;
  return kept;
}

// loss: sums over this micro-batch, the denominator is the mini-batch's
/// Returns -sum_t keep_t log p_t / sum_t keep_t.
inline troupe::Loss kept_nll(const troupe::TrainBatch& b) {
  const at::Tensor nll = -(b[keep] * b.logprobs() * b.mask()).sum();
  return {.loss = nll / b.denominator(), .sums = {{"nll", nll}}};
}

// workflow: the calls, with the keys that they read and write
inline troupe::Workflow best_of_n() {
  troupe::Workflow w{"best_of_n", "train on the best of several answers"};
  w.role("actor", troupe::trained);
  w.generate("actor_gen", "actor");
  w.each("check", checker, reads(troupe::keys::response), writes(tool_score));
  w.groups("pick_best", pick_best, reads(tool_score), writes(keep));
  w.train("actor_train", "actor", kept_nll, reads(keep), mean_over(keep));
  w.metric("tool/score", tool_score);
  return w;
}

// app: what the program adds to the built-in workflows
inline troupe::App app() {
  auto section
    = troupe::Section<Settings>("best_of_n")
        .field("tool", &Settings::tool,
               "Program that reads an answer a line and says 1 or 0",
               troupe::required)
        .field("deadline_ms", &Settings::deadline_ms, "Time limit of a check")
        .at_least(1)
        .field("processes", &Settings::processes, "Programs on each worker")
        .at_least(1);
  return troupe::App{}
    .add(section)
    .spawnable("checker", checker, section)
    .add(best_of_n());
}
