// One shard: a role's weights on one device and everything that is done with
// them - generate, infer, train, load, save. Device threads call it with rows
// in and rows out; nothing here knows of actors, plans or sockets. The dp
// group's collectives come with the RunContext.
//
// Not thread-safe: only its device thread calls it. Results depend on the rows,
// the weights and the thread count alone (I8).
#pragma once

#include "config/dtype.hpp"
#include "config/ids.hpp"
#include "config/settings.hpp"
#include "config/strategy.hpp"
#include "models/loss.hpp"
#include "models/run_context.hpp"
#include "models/sums.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {
struct ModelShape;
} // namespace troupe
namespace troupe::net {
struct Rows;
} // namespace troupe::net

namespace troupe::models {

struct GenerateOptions;
class Parameters;
class Snapshot;
struct Transformer;

/// How `infer` runs.
struct InferOptions {
  double temperature = 1.0; ///< divides the logits of `logprobs`
  bool entropy = false;     ///< `logprobs` also gives key `entropy` [L], nats
  /// Most tokens computed at once; 0 = default. A longer sequence is one
  /// micro-batch by itself.
  std::int64_t micro_batch_tokens = 0;
};

/// One train call on this dp coordinate.
struct TrainSpec {
  std::string fn; ///< name of the loss
  /// Samples of each optimizer step here, in order, epochs unrolled. Equal
  /// length on all dp ranks; an inner vector may be empty.
  std::vector<std::vector<SampleId>> mini_batches;
  std::int64_t micro_batch_tokens = 0; ///< as in InferOptions
  /// At least so many micro-batches where there are so many samples; 0 = by
  /// tokens alone.
  int micro_batches = 0;
  double temperature = 1.0; ///< of the sampler that made the rows
  LossSettings loss;
};

class Engine {
public:
  struct Spec {
    std::filesystem::path folder; ///< HF folder, its config.json is read
    std::string role;             ///< for log lines and errors
    bool scalar_head = false;
    bool trainable = false;
    Strategy strategy;
    Coordinate where;
    OptimizerSettings optimizer;
    std::uint64_t total_optimizer_steps = 0; ///< for the schedule
    std::uint64_t seed = 0;
    DType dtype = DType::f32;
    const Losses* losses = nullptr; ///< null: built_in_losses()
  };

  /// Reads config.json and allocates. Throws ConfigError (folder), PlanError
  /// (a strategy or dtype that this build cannot run).
  explicit Engine(Spec spec);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// HF folder -> weights. A missing scalar head becomes a zero head, logged.
  /// Throws ConfigError naming file and tensor.
  void load_weights();

  /// `prompt_ids` -> sequence_ids, loss_mask, logprobs, truncated. Sample ids
  /// name the noise (I2). Throws FailureError{aborted} when stopped.
  net::Rows generate(const net::Rows& prompts, const GenerateOptions& options,
                     RunContext& context);

  /// `fn` logprobs | values | scores over `sequence_ids` (scores of pairs:
  /// chosen_ids and rejected_ids -> chosen_scores, rejected_scores). No samples
  /// in, no columns out.
  net::Rows infer(const std::string& fn, const net::Rows& rows,
                  RunContext& context, const InferOptions& options = {});

  /// All optimizer steps of one train call; rows may hold more samples than
  /// the mini-batches name. Sums are this rank's own (add them over ranks)
  /// except for grad_norm, lr and skipped_steps, which rank 0 alone reports.
  Sums train(const TrainSpec& spec, const net::Rows& rows, RunContext& context);

  /// The flat weight plane, in the order of plans::Layout.
  std::span<std::byte> weights();
  /// After somebody wrote `weights()`: refreshes what is derived from them.
  void weights_changed();
  /// Of the weight plane's bits; equal weights, equal number, on any machine.
  std::uint64_t checksum() const;

  /// Copies what a checkpoint is written from; the moments of trained roles
  /// `with_moments`.
  void copy_to(Snapshot& snapshot, bool with_moments) const;
  /// Writes a whole HF folder with tensors as `dtype`; tokenizer files come
  /// from where the model was loaded.
  void save_hf(const std::filesystem::path& folder, DType dtype) const;
  /// Moments and step count, one file (the caller's folder is made atomic).
  void save_state(const std::filesystem::path& file) const;
  /// .. and back; also the weights where the file has them (Snapshot), which
  /// is all that an engine takes that does not train.
  /// Throws ConfigError where the file does not fit this model.
  void load_state(const std::filesystem::path& file);

  const ModelShape& shape() const;
  Parameters& parameters();
  const Transformer& transformer() const;
  std::uint64_t optimizer_steps() const;

  struct Impl; ///< models/internal/engine_impl.hpp

private:
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::models
