// The smallest user-defined actor: it counts letters; training then favors
// short responses.
#include <troupe/actor.hpp>
#include <troupe/app.hpp>
#include <troupe/loss.hpp>

using troupe::keys::response;
constexpr troupe::Key<float> letters{"letters"};
constexpr troupe::Key<float> weight{"weight"};

struct Counter {
  static constexpr const char* name = "counter";
  std::size_t samples = 0; // an actor has state, and no locks
};
using Self = troupe::SampleActor::stateful_pointer<Counter>;

troupe::SampleActor::behavior_type counter(Self self) {
  return {[=](troupe::run_atom, troupe::Sample sample) {
    ++self->state.samples;
    sample.set(letters, static_cast<float>(sample[response].size()));
    return sample;
  }};
}

float shortness(float count) {
  return 1.F / (1.F + count);
}

troupe::Loss weighted_nll(const troupe::TrainBatch& b) {
  return {.loss
          = -(b[weight] * b.logprobs() * b.mask()).sum() / b.denominator()};
}

int main(int argc, char** argv) {
  troupe::Workflow w{"hello", "train towards short answers"};
  w.role("actor", troupe::trained);
  w.generate("actor_gen", "actor");
  w.each("count", counter, reads(response), writes(letters));
  w.each("shortness", shortness, reads(letters), writes(weight));
  w.train("actor_train", "actor", weighted_nll, reads(weight));
  w.metric("hello/letters", letters);
  return troupe::App{}.spawnable("counter", counter).add(w).main(argc, argv);
}
