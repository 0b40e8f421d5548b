// Tests of user-defined programs. In milliseconds and without models: one step
// of a workflow with fake engines, and the properties that every loss must
// have. In seconds: a run of the program itself with a tiny model, on two
// worker processes.
#pragma once

#include "troupe/app.hpp"

#include <chrono>
#include <filesystem>

namespace troupe::testing {

/// One step of an App's workflow in this process. User-defined functions and
/// actors run unchanged; fakes write what models would write.
class Kit {
public:
  Kit(App app, std::string workflow);

  /// Replaces the defaults of a section's settings.
  template <class S>
  Kit& settings(const std::string& section, S values) {
    sections_[section] = std::move(values);
    return *this;
  }
  /// Sets the function that writes to a sample what a generate, infer or reward
  /// call would write, and what is decoded from it (keys::response). For a
  /// converse call it acts as the model: it reads keys::appended and sets
  /// keys::turn.
  Kit& fake(const std::string& call, std::function<void(Sample&)> engine) {
    fakes_[call] = std::move(engine);
    return *this;
  }
  /// Runs the calls in order; samples of one group must be adjacent. Throws
  /// std::runtime_error naming the call that failed.
  std::vector<Sample> step(std::vector<Sample> samples);

  /// Returns the value that the next step will receive.
  template <class T>
  T carried(Carried<T> value) const {
    return detail::column({}, carried_, value);
  }

private:
  void run(const detail::UserCall& call, std::vector<Sample>& samples);

  std::vector<detail::UserActor> actors_;
  detail::WorkflowParts workflow_;
  std::map<std::string, std::any> sections_;
  std::map<std::string, std::function<void(Sample&)>> fakes_;
  detail::CarriedValues carried_;
};

/// Returns `groups` groups of `n` samples each, with ids from 0.
std::vector<Sample> samples(std::uint32_t groups, std::uint32_t n);

/// Errors of a loss on random batches.
struct LossCheck {
  /// Largest difference between its gradient and finite differences.
  double gradient_error = 0;
  /// Largest difference, in loss and gradient, between the whole mini-batch and
  /// the sum of its parts, both for micro-batches and for dp ranks.
  double split_error = 0;
  bool ok() const {
    return gradient_error < 1e-6 && split_error < 1e-9;
  }
};

namespace detail_testing {
LossCheck check_loss(LossFunction loss, const std::vector<KeyInfo>& reads,
                     const MeanOver& mean_over);
} // namespace detail_testing

/// Checks a loss on random batches; keys get numbers from 0 to 1.
template <class... R>
LossCheck check_loss(LossFunction loss, Reads<R...> reads,
                     const MeanOver& mean_over = {}) {
  return detail_testing::check_loss(loss, reads.infos(), mean_over);
}

/// One line of a run's file, as values by name.
struct Row {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
};

/// Results of a run.
struct Run {
  int code = 0;             ///< exit code; 128 + signal if killed by one
  std::string errors;       ///< standard error
  std::vector<Row> metrics; ///< per step: "step", "actor/loss", ...
  /// Per sample: "step", "sample", "prompt", "response", ..., and the
  /// user-defined keys that are metrics or that conversations write.
  std::vector<Row> samples;
};

/// Runs `PROGRAM train SETTINGS WORDS...` on two worker processes with one
/// device each. The working directory is a temporary folder, removed
/// afterwards, with a tiny random `model`, a `scorer` that is the same with a
/// scalar head, and the data set `prompts.jsonl`: "models.actor.path=model".
/// Words are "KEY=VALUE". Throws std::runtime_error if the program cannot be
/// started or does not end in time.
Run run(const std::filesystem::path& program,
        const std::filesystem::path& settings,
        const std::vector<std::string>& words,
        std::chrono::seconds deadline = std::chrono::minutes(2));

/// Writes a model of a few kilobytes: its tokens are bytes, its weights random,
/// its responses always of maximum length.
void tiny_model(const std::filesystem::path& folder, bool scalar_head = false);

} // namespace troupe::testing
