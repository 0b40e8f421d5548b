// For tests of own programs. In milliseconds and without models: one step of a
// workflow with fake engines, and the properties that every loss must have. In
// seconds: a run of the program itself with a tiny model, over two processes.
#pragma once

#include "troupe/app.hpp"

#include <chrono>
#include <filesystem>

namespace troupe::testing {

/// One step of an App's workflow in this process. Own functions and actors run
/// as they are; what models would write, fakes write.
class Kit {
public:
  Kit(App app, std::string workflow);

  /// The settings of a section in place of its defaults.
  template <class S>
  Kit& settings(const std::string& section, S values) {
    sections_[section] = std::move(values);
    return *this;
  }
  /// Sets on a sample what a generate, infer or reward call writes, and
  /// what is decoded from it (keys::response). Of a converse call it is the
  /// model: it reads keys::appended and sets keys::turn.
  Kit& fake(const std::string& call, std::function<void(Sample&)> engine) {
    fakes_[call] = std::move(engine);
    return *this;
  }
  /// Runs the calls in their order; samples of one group stand together. Throws
  /// std::runtime_error naming the call that failed.
  std::vector<Sample> step(std::vector<Sample> samples);

  /// What the next step gets.
  template <class T>
  T carried(Carried<T> value) const {
    return detail::column({}, carried_, value);
  }

private:
  void run(const detail::OwnCall& call, std::vector<Sample>& samples);

  std::vector<detail::OwnActor> actors_;
  detail::WorkflowParts workflow_;
  std::map<std::string, std::any> sections_;
  std::map<std::string, std::function<void(Sample&)>> fakes_;
  detail::CarriedValues carried_;
};

/// `groups` groups of `n` samples each, ids from 0.
std::vector<Sample> samples(std::uint32_t groups, std::uint32_t n);

/// How far a loss is from what it must be, on random batches.
struct LossCheck {
  /// Largest difference of its gradient from finite differences.
  double gradient_error = 0;
  /// Largest difference, in loss and gradient, of the whole mini-batch from its
  /// parts together: of micro-batches as of dp ranks.
  double split_error = 0;
  bool ok() const {
    return gradient_error < 1e-6 && split_error < 1e-9;
  }
};

namespace detail_testing {
LossCheck check_loss(LossFunction loss, const std::vector<KeyInfo>& reads,
                     const MeanOver& mean_over);
} // namespace detail_testing

/// The keys get numbers from 0 to 1.
template <class... R>
LossCheck check_loss(LossFunction loss, Reads<R...> reads,
                     const MeanOver& mean_over = {}) {
  return detail_testing::check_loss(loss, reads.infos(), mean_over);
}

/// One line of a run's file, by name.
struct Row {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
};

/// What a run left behind.
struct Run {
  int code = 0;             ///< its exit code; 128 + signal if one ended it
  std::string errors;       ///< its standard error
  std::vector<Row> metrics; ///< of each step: "step", "actor/loss", ..
  /// Of each sample: "step", "sample", "prompt", "response", .., and own keys
  /// that are metrics or that conversations write.
  std::vector<Row> samples;
};

/// Runs `PROGRAM train SETTINGS WORDS..` in two worker processes, a device
/// each. It stands in a folder of its own, removed afterwards, with a tiny
/// random `model`, a `scorer` that is one with a scalar head, and
/// `prompts.jsonl`, the data set: "models.actor.path=model". Words are
/// "KEY=VALUE". Throws std::runtime_error where it cannot start or does not end
/// in time.
Run run(const std::filesystem::path& program,
        const std::filesystem::path& settings,
        const std::vector<std::string>& words,
        std::chrono::seconds deadline = std::chrono::minutes(2));

/// Writes a model of a few kilobytes: bytes are its tokens, weights random,
/// answers always as long as they may be.
void tiny_model(const std::filesystem::path& folder, bool scalar_head = false);

} // namespace troupe::testing
