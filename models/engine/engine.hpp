// One shard: a role's weights on one device and every operation on them -
// generate, infer, train, load, save. Device threads call it with rows in and
// rows out; nothing here knows of actors or sockets. The collectives of its
// mesh axes are passed in the RunContext. Not thread-safe: only its device
// thread calls it. Results depend on the rows, the weights and the thread count
// alone (I8). When a call returns, the device has no work left from it and
// keeps planes only, and what Spec::keeps_generator says.
#pragma once

#include "config/base/dtype.hpp"
#include "config/base/ids.hpp"
#include "config/base/strategy.hpp"
#include "config/model/lora.hpp"
#include "config/settings/settings.hpp"
#include "models/losses/loss.hpp"
#include "models/parallel/run_context.hpp"
#include "models/parallel/weight_use.hpp"
#include "models/rl/metric_sums.hpp"

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

class Backend;
class EngineGenerator;
struct FrozenWeights;
struct GenerateEvents;
struct GenerateOptions;
struct ResponseBatch;
struct LocalModel;
class Parameters;
enum class Plane : std::uint8_t;
class Snapshot;
struct SpeakingEngine;
struct TrainRows;
struct Transformer;
class TurnQueue;
class Workspaces;

/// Options of `infer`.
struct InferOptions {
  double temperature = 1.0; ///< divides the logits of `logprobs`
  bool entropy = false;     ///< `logprobs` also returns key `entropy` [L], nats
  std::int64_t top_k = 1;   ///< tokens K of `top_logprobs`
  /// Most tokens computed at once; 0 = default. A longer sequence is a
  /// micro-batch of its own.
  std::int64_t micro_batch_tokens = 0;
  /// At least so many micro-batches if samples suffice; 0 = by tokens alone.
  int micro_batches = 0;
};

/// One train call on this dp coordinate.
struct TrainSpec {
  std::string fn; ///< name of the loss
  /// Samples of each optimizer step here, in order, epochs unrolled. Equal
  /// length on all dp ranks; an inner vector may be empty.
  std::vector<std::vector<SampleId>> mini_batches;
  std::int64_t micro_batch_tokens = 0; ///< as in InferOptions
  int micro_batches = 0;               ///< as in InferOptions
  double temperature = 1.0; ///< of the sampler that generated the rows
  bool recompute = false;   ///< recompute activations in backward
  LossSettings loss;
};

class Engine {
public:
  struct Spec {
    std::filesystem::path folder; ///< HF folder; its config.json is read
    std::string role;             ///< for log lines and errors
    bool scalar_head = false;
    bool trainable = false;
    AdapterSource adapters;
    Strategy strategy;
    Coordinate where;
    OptimizerSettings optimizer;
    std::uint64_t total_optimizer_steps = 0; ///< for the schedule
    std::uint64_t seed = 0;
    DType dtype = DType::f32;
    const Losses* losses = nullptr; ///< null: losses()
    Backend* backend = nullptr;     ///< null: the host
    WeightUse weight_use = WeightUse::shared;
    bool keeps_generator = false; ///< what generation allocates stays
  };

  /// Reads config.json and allocates. Throws ConfigError (folder), PlanError (a
  /// strategy or dtype that this build cannot run). `workspaces` are those of
  /// the device; null: the engine has its own.
  explicit Engine(Spec spec, Workspaces* workspaces = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Loads the weights from the HF folder; adapters are read or new, a missing
  /// scalar head is zero, logged. Throws ConfigError naming file and tensor.
  void load_weights();
  /// Loads only the frozen weights: those that are trained come otherwise.
  void load_frozen();
  /// Returns those of the whole model, read again where this has a part.
  std::shared_ptr<const FrozenWeights> whole_frozen() const;

  /// Generates: `prompt_ids` -> sequence_ids, loss_mask, logprobs, truncated.
  /// Sample ids select the noise (I2). Throws FailureError{aborted} when
  /// stopped.
  net::Rows generate(const net::Rows& prompts, const GenerateOptions& options,
                     RunContext& context);
  /// Generates batches as one; see Generator::run_batches.
  void generate(std::span<const ResponseBatch> batches,
                const GenerateOptions& options, RunContext& context,
                const GenerateEvents& events);

  /// Generates turns of the samples' conversations until the queue is closed;
  /// see Generator::converse. All dp ranks call it, also those without samples.
  void converse(const net::Rows& prompts, const GenerateOptions& options,
                TurnQueue* turns, RunContext& context);
  friend void converse(std::span<const SpeakingEngine> speakers,
                       const net::Rows& prompts, TurnQueue* turns);

  /// Computes `fn` logprobs | top_logprobs | values | scores over
  /// `sequence_ids` (of pairs: chosen_ids and rejected_ids -> chosen_scores,
  /// rejected_scores); top_logprobs: top_ids and top_logprobs [L K], zeros
  /// where masked. Without samples it returns no columns.
  net::Rows infer(const std::string& fn, const net::Rows& rows,
                  RunContext& context, const InferOptions& options = {});

  /// Runs all optimizer steps of one train call; `rows` may hold more samples
  /// than the mini-batches name. Returns sums to add over ranks (empty unless
  /// tp rank is 0): all from the last stage, those of experts from each stage.
  /// `beside`: more sequences of the same optimizer steps; null: none.
  MetricSums train(const TrainSpec& spec, const net::Rows& rows,
                   RunContext& context, const TrainRows* beside = nullptr);

  /// Records that the plane of weights was written: copies in host memory are
  /// outdated.
  void weights_changed();
  /// Offloads planes from the device (Parameters); `reload` copies them back.
  void offload(std::span<const Plane> planes);
  void reload(std::span<const Plane> planes);
  void drop_weights();
  /// Prepares for the whole plane of weights being overwritten.
  void expect_weights();
  /// Returns the bytes of the planes that are on the device.
  std::uint64_t device_bytes() const;

  /// Returns a checksum of the weights that this device is the first to own, as
  /// `products` read them: equal on any machine if they have equal bits. Those
  /// of a dp replica's devices add up to that of the whole model.
  std::uint64_t checksum(DType products = DType::f32) const;
  /// Returns the same for other weights in the order of their plane.
  std::uint64_t checksum_of(std::span<const std::byte> weights) const;

  /// Prepares a snapshot for copies of the planes.
  void describe(Snapshot& snapshot, bool with_moments) const;
  /// Copies what a checkpoint is written from. All devices of a replica call
  /// it; the first one's copy is the whole model.
  void copy_to(Snapshot& snapshot, bool with_moments,
               const Groups& groups = {}) const;
  /// Writes a whole HF folder with tensors as `dtype`, and the tokenizer files
  /// of the loaded one. All devices of a replica call it; the first one writes.
  void save_hf(const std::filesystem::path& folder, DType dtype,
               const Groups& groups = {}) const;
  /// Writes this device's planes and step counts as snapshot `id` (plane_file).
  std::uint64_t write_planes(int file, std::uint64_t id) const;
  /// Reads them back; false: the file is not that snapshot of this device.
  bool read_planes(int file, std::uint64_t id);
  /// Writes moments and step count to one file, likewise.
  void save_state(const std::filesystem::path& file,
                  const Groups& groups = {}) const;
  /// Loads such a file. Throws ConfigError if it does not fit this model.
  void load_state(const std::filesystem::path& file);

  /// Returns the shape of the whole model.
  const ModelShape& shape() const;
  /// Returns the part of it that is on this device.
  const LocalModel& part() const;
  Parameters& parameters();
  const Transformer& transformer() const;
  std::uint64_t optimizer_steps() const;

  struct Impl; ///< models/engine/engine_impl.hpp

private:
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<EngineGenerator> generator_; ///< null: none is kept
};

} // namespace troupe::models
