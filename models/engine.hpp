// One shard: a role's weights on one device and everything that is done with
// them - generate, infer, train, load, save. Device threads call it with rows
// in and rows out; nothing here knows of actors or sockets. The collectives of
// its mesh axes come with the RunContext.
//
// Not thread-safe: only its device thread calls it. Results depend on the rows,
// the weights and the thread count alone (I8). When a call returns, the device
// has nothing left to do for it and keeps planes only.
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

class Compute;
struct GenerateEvents;
struct GenerateOptions;
struct ModelPart;
class Parameters;
enum class Plane : std::uint8_t;
class Snapshot;
struct Transformer;
class TurnQueue;
class Workspaces;

/// How `infer` runs.
struct InferOptions {
  double temperature = 1.0; ///< divides the logits of `logprobs`
  bool entropy = false;     ///< `logprobs` also gives key `entropy` [L], nats
  /// Most tokens computed at once; 0 = default. A longer sequence is one
  /// micro-batch by itself.
  std::int64_t micro_batch_tokens = 0;
  /// At least so many micro-batches where there are so many samples; 0 = by
  /// tokens alone.
  int micro_batches = 0;
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
  bool recompute = false;   ///< activations in backward instead of keeping them
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
    const Losses* losses = nullptr;   ///< null: losses()
    Compute* compute = nullptr;       ///< of the device; null: the host
    Workspaces* workspaces = nullptr; ///< of the device; null: its own
    bool lends = true;                ///< other devices read its planes
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
  /// Batches without a pause between them; see Generator::run_batches.
  void generate(std::span<const net::Rows> batches,
                const GenerateOptions& options, RunContext& context,
                const GenerateEvents& events);

  /// Turns of the samples' conversations until the queue is closed; see
  /// Generator::converse. All copies call it, also those without samples.
  void converse(const net::Rows& prompts, const GenerateOptions& options,
                TurnQueue* turns, RunContext& context);

  /// `fn` logprobs | values | scores over `sequence_ids` (scores of pairs:
  /// chosen_ids and rejected_ids -> chosen_scores, rejected_scores). No samples
  /// in, no columns out.
  net::Rows infer(const std::string& fn, const net::Rows& rows,
                  RunContext& context, const InferOptions& options = {});

  /// All optimizer steps of one train call; rows may hold more samples than
  /// the mini-batches name. Sums are this rank's own (add them over ranks)
  /// except for grad_norm, lr and skipped_steps, which rank 0 alone reports.
  Sums train(const TrainSpec& spec, const net::Rows& rows, RunContext& context);

  /// The flat weight plane of this part, in the order of plans::Layout.
  std::span<std::byte> weights();
  /// After somebody wrote `weights()`: copies in host memory are old.
  void weights_changed();
  /// Planes leave the device and come back (Parameters).
  void offload(std::span<const Plane> planes);
  void reload(std::span<const Plane> planes);
  void drop_weights();
  /// Before somebody writes all of `weights()`, wherever they are.
  void expect_weights();
  /// Of planes on the device.
  std::uint64_t device_bytes() const;

  /// Of the bits of the weights that this device is the first to own; equal
  /// weights, equal number, on any machine. Those of a copy's devices add up to
  /// that of the whole model.
  std::uint64_t checksum() const;
  /// Of other weights in the order of `weights()`.
  std::uint64_t checksum_of(std::span<const std::byte> weights) const;

  /// Makes a snapshot ready for the copies of the planes (Snapshot::room).
  void describe(Snapshot& snapshot, bool with_moments) const;
  /// Copies what a checkpoint is written from; the moments of trained roles
  /// `with_moments`. All devices of a replica call it, the first one's copy is
  /// the whole model's.
  void copy_to(Snapshot& snapshot, bool with_moments,
               const Groups& groups = {}) const;
  /// Writes a whole HF folder with tensors as `dtype`; tokenizer files come
  /// from where the model was loaded. All devices of a replica call it, the
  /// first one writes.
  void save_hf(const std::filesystem::path& folder, DType dtype,
               const Groups& groups = {}) const;
  /// Moments and step count, one file (the caller's folder is made atomic);
  /// likewise.
  void save_state(const std::filesystem::path& file,
                  const Groups& groups = {}) const;
  /// Throws ConfigError where the file does not fit this model.
  void load_state(const std::filesystem::path& file);

  /// Of the whole model.
  const ModelShape& shape() const;
  /// What of it is here.
  const ModelPart& part() const;
  Parameters& parameters();
  const Transformer& transformer() const;
  std::uint64_t optimizer_steps() const;

  struct Impl; ///< models/internal/engine_impl.hpp

private:
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::models
