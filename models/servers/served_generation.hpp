// Generation by a server instead of our decode loop: the server gets the
// weights when their version is new (of a model with adapters the base once,
// then adapters alone), is checked with them against our own engine before the
// first token, and is started again when it is lost. Tokens in, tokens out; no
// text is tokenized twice. A tensor-parallel replica has one server: its first
// device has it and gathers the weights, the others assist.
#pragma once

#include "models/generate/generate_events.hpp"
#include "models/generate/response_batch.hpp"
#include "models/servers/generation_server.hpp"
#include "models/servers/own_scores.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace troupe::models {

class Engine;
class TurnQueue;

struct ServedSpec {
  ServerSpec server;
  /// Most that a log-probability of the server may differ from our engine's.
  double most_gap = 1e-3;
  /// Copies the weights, or what is trained beside them (adapters), as a device
  /// that holds all of them has them, from the devices of the replica. Empty:
  /// this device holds them all.
  std::function<void(std::span<std::byte>)> gather = {};
};

/// Numbers of a server, for metrics.
struct ServedReport {
  std::uint64_t restarts = 0;
  std::uint64_t updated_bytes = 0;
  double update_s = 0;       ///< of them: copy, sums, and the server's own part
  std::optional<double> gap; ///< largest of a check, if one was made
};

class ServedGeneration {
public:
  explicit ServedGeneration(ServedSpec spec);

  /// Generates as Engine::generate does, by weights of `version`, which the
  /// engine has. Throws FailureError: what the server refused or lost, after
  /// it was started again in vain; bad_input if its log-probabilities are not
  /// those of the weights, stale if it used others.
  void generate(Engine& engine, const std::string& version,
                std::span<const ResponseBatch> batches,
                const GenerateOptions& options, RunContext& context,
                const GenerateEvents& events);
  /// Generates turns as Engine::converse does, until the queue is closed.
  /// Throws as `generate`.
  void converse(Engine& engine, const std::string& version,
                const ResponseBatch& prompts, const GenerateOptions& options,
                RunContext& context, TurnQueue& turns);
  /// Brings the server to `version`, before those who ask it count their time.
  /// Returns the bytes that it took.
  std::uint64_t make_ready(Engine& engine, const std::string& version,
                           RunContext& context);
  /// Does the part of a generation that a replica's other devices have in it:
  /// their part of the check. Each batch ends without rows here.
  void assist(Engine& engine, const std::string& version,
              std::span<const ResponseBatch> batches, RunContext& context,
              const GenerateEvents& events);
  /// Returns what has happened since it was last asked.
  ServedReport take_report() {
    return std::exchange(report_, {});
  }

private:
  void make_current(Engine& engine, const std::string& version,
                    RunContext& context);
  void take_weights(Engine& engine);
  std::optional<SentWeights> take_base(const Engine& engine) const;
  std::uint64_t send_weights(const SentWeights* base,
                             const std::string& version, RunContext& context);
  void verify(RunContext& context);
  /// Does `work` by a server that has `version`. If that is lost, starts it
  /// again and has the rest of the work done.
  void use_server(Engine& engine, const std::string& version,
                  RunContext& context, const std::function<void()>& work);

  ServedSpec spec_;
  std::unique_ptr<GenerationServer> server_;
  SentWeights weights_;
  OwnScores own_;
  std::optional<std::string> version_; ///< that it has; {}: not running
  ServedReport report_;
};

} // namespace troupe::models
