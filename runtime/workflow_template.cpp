#include "runtime/workflow_template.hpp"

#include "config/error.hpp"

namespace troupe::runtime {

namespace {

/// Stands for the workflow's name in the texts below.
constexpr std::string_view name_here = "@NAME@";

constexpr const char* header
  = R"cpp(// The workflow @NAME@: answers of a wanted length get more weight in training.
// Change what `judge` looks at, and it trains towards something else.
#pragma once

#include <troupe/actor.hpp> // own actors: Sample, Future, Task, ProcessPool
#include <troupe/app.hpp>   // Key, Workflow, Section, App
#include <troupe/loss.hpp>  // own losses: tensors and their functions

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

namespace @NAME@ {

// Keys are the dataflow: each is written by one call and read by any number.
constexpr troupe::Key<float> score{"score"};
constexpr troupe::Key<float> weight{"weight"};

/// The section `@NAME@:` of the YAML.
struct Settings {
  int letters = 60;
  float tolerance = 20.F;
};

/// What an instance of the actor keeps. Each worker has one, and only its own
/// thread touches it.
struct Judge {
  static constexpr const char* name = "judge";
  std::size_t samples = 0;
};
using Self = troupe::SampleActor::stateful_pointer<Judge>;

/// Scores an answer: 1 at the wanted number of letters, towards 0 away from it.
inline troupe::SampleActor::behavior_type judge(Self self, Settings settings) {
  return {[=](troupe::run_atom, troupe::Sample sample) {
    ++self->state.samples;
    const auto letters = static_cast<int>(sample[troupe::keys::response].size());
    const auto off = static_cast<float>(letters - settings.letters);
    sample.set(score, std::exp(-std::abs(off) / settings.tolerance));
    return sample;
  }};
}

/// Returns each answer's score minus the mean over the answers to its prompt.
inline std::vector<float> above_mean(std::span<const float> scores) {
  const auto sum = std::accumulate(scores.begin(), scores.end(), 0.F);
  std::vector<float> above(scores.begin(), scores.end());
  for (auto& value : above)
    value -= sum / static_cast<float>(scores.size());
  return above;
}

/// -sum_t weight_t log p_t / number of the model's own tokens
inline troupe::Loss weighted_nll(const troupe::TrainBatch& b) {
  const at::Tensor nll = -at::sum(b[weight] * b.logprobs() * b.mask());
  return {.loss = nll / b.denominator(), .sums = {{"nll", nll}}};
}

inline troupe::Workflow workflow() {
  troupe::Workflow w{"@NAME@", "train towards answers of a wanted length"};
  w.role("actor", troupe::trained);
  w.generate("actor_gen", "actor");
  w.each("judge", judge, reads(troupe::keys::response), writes(score));
  w.groups("above_mean", above_mean, reads(score), writes(weight));
  w.train("actor_train", "actor", weighted_nll, reads(weight));
  w.metric("@NAME@/score", score);
  return w;
}

inline troupe::App app() {
  auto section = troupe::Section<Settings>("@NAME@")
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

} // namespace @NAME@
)cpp";

constexpr const char* main_file = R"cpp(#include "@NAME@.hpp"

int main(int argc, char** argv) {
  return @NAME@::app().main(argc, argv);
}
)cpp";

constexpr const char* cmake
  = R"cmake(# After `make install PREFIX=WHERE` in Troupe's folder:
#   cmake -S . -B build -DCMAKE_PREFIX_PATH=WHERE && cmake --build build
cmake_minimum_required(VERSION 3.25)
project(@NAME@ LANGUAGES CXX)
find_package(troupe REQUIRED)
add_executable(@NAME@ main.cpp)
target_link_libraries(@NAME@ PRIVATE troupe::troupe)
)cmake";

constexpr const char* settings
  = R"yaml(# The model and the prompts are those of Troupe's demo (`make run`): begin in
# Troupe's folder, or put your own paths here.
#   build/@NAME@ explain @NAME@         your settings
#   build/@NAME@ train @NAME@.yaml
run: {name: @NAME@, seed: 1, steps: 20, save_every: 0, keep: 1}
cluster: {nodes: 1, devices_per_node: 2, workers_per_node: 2, device: cpu}
workflow: @NAME@
models:
  actor:
    path: runs/tiny_sft/latest/actor
    optimizer: {lr: 1.0e-3, weight_decay: 0.0}
data: {train: runs/tiny_data/prompts.jsonl, batch_size: 16, max_prompt_tokens: 32}
rollout: {n: 4, max_new_tokens: 32}
algorithm: {mini_batches: 2}
@NAME@: {letters: 60, tolerance: 20.0}
plan: data_parallel
)yaml";

std::string filled(std::string text, const std::string& name) {
  for (auto at = text.find(name_here); at != text.npos;
       at = text.find(name_here, at + name.size()))
    text.replace(at, name_here.size(), name);
  return text;
}

bool is_name(const std::string& text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view more = "abcdefghijklmnopqrstuvwxyz0123456789_";
  return !text.empty() && letters.find(text[0]) != letters.npos
         && text.find_first_not_of(more) == text.npos;
}

} // namespace

std::vector<TemplateFile> workflow_template(const std::string& name) {
  if (!is_name(name))
    throw ConfigError({.place = {"command line", 0},
                       .path = "",
                       .expected = "a name of lower-case letters, digits and _",
                       .got = "'" + name + "'",
                       .hint = "my_workflow"});
  return {{name + ".hpp", filled(header, name)},
          {"main.cpp", filled(main_file, name)},
          {"CMakeLists.txt", filled(cmake, name)},
          {name + ".yaml", filled(settings, name)}};
}

} // namespace troupe::runtime
