// A model that may ask a calculator before it answers. An actor leads each
// sample's conversation; the model is trained on the run's `reward:` of the
// response, and so learns to ask instead of guessing. A reward covers the whole
// response: a sum that only the calculator computed counts as well.
#include <troupe/actor.hpp>
#include <troupe/app.hpp>
#include <troupe/loss.hpp>

#include <cstdio>

using troupe::keys::logprobs, troupe::keys::scores, troupe::keys::turn;
constexpr troupe::Key<float> asked{"asked"};
constexpr troupe::Key<float> advantage{"advantage"};

// tool: a separate actor, queried by messages
using Calculator = caf::typed_actor<caf::replies_to<int, int>::with<int>>;
Calculator::behavior_type calculator() {
  return {[](int a, int b) { return a + b; }};
}

// state: the conversation leader has none
struct Solver {
  static constexpr const char* name = "solver";
};
using Self = troupe::SampleActor::stateful_pointer<Solver>;

/// Returns true if the model's turn ends with a question to the calculator.
bool asks(const std::string& said, int& a, int& b) {
  const auto at = said.rfind("calc ");
  int end = -1;
  return at != std::string::npos
         && std::sscanf(said.c_str() + at, "calc %4d+%4d=%n", &a, &b, &end) == 2
         && said.size() == at + static_cast<std::size_t>(end);
}

// episode: a loop of turns; the samples of a batch run concurrently
/// Text of the tool has loss_mask 0: the model reads it but is not trained on
/// it.
troupe::Task<troupe::Sample> solve(Self self, troupe::Model model,
                                   Calculator tool, troupe::Sample sample) {
  int questions = 0;
  sample = co_await model.extend(std::move(sample));
  for (int a = 0, b = 0; asks(sample[turn], a, b); ++questions) {
    const int sum
      = co_await troupe::ask<int>(self, std::chrono::seconds(1), tool, a, b);
    sample.append(std::to_string(sum) + "\n");
    sample = co_await model.extend(std::move(sample));
  }
  co_return sample.set(asked, questions > 0 ? 1.F : 0.F);
}
troupe::SampleActor::behavior_type solver(Self self, troupe::Model model) {
  const auto tool = self->spawn(calculator);
  return {
    [=](troupe::run_atom, troupe::Sample x) -> caf::result<troupe::Sample> {
      return solve(self, model, tool, std::move(x));
    }};
}

// group: better or worse than the other responses to the prompt
std::vector<float> compare(std::span<const float> score) {
  float sum = 0;
  for (const float s : score)
    sum += s;
  std::vector<float> better;
  for (const float s : score)
    better.push_back(s - sum / static_cast<float>(score.size()));
  return better;
}

// loss: the clipped surrogate of PPO over the model's own tokens
troupe::Loss surrogate(const troupe::TrainBatch& b) {
  const at::Tensor ratio = (b.logprobs() - b[logprobs]).exp();
  const at::Tensor clipped = ratio.clamp(0.8, 1.2) * b[advantage];
  const at::Tensor gain = (ratio * b[advantage]).minimum(clipped);
  return {.loss = -(gain * b.mask()).sum() / b.denominator()};
}

int main(int argc, char** argv) {
  troupe::Workflow w{"tool_use", "learn to ask a calculator"};
  w.role("actor", troupe::trained);
  w.converse("solve", "actor", solver, troupe::reads(), writes(asked));
  w.reward("score", writes(scores));
  w.groups("compare", compare, reads(scores), writes(advantage));
  w.train("actor_train", "actor", surrogate, reads(logprobs, advantage));
  w.metric("tool/right", scores).metric("tool/asked", asked);
  return troupe::App{}.spawnable("solver", solver).add(w).main(argc, argv);
}
