// Sums the gradient plane over the owners of each box, after which every owner
// has the whole gradient of what it holds. First over dp, unit by unit from the
// last to the first, each as soon as backward is done with it, beside backward:
// on a stream of the device where the groups have streams, else on a thread.
// With z1 each rank gets the sums of its own part of a unit. Then boxes that tp
// ranks share, and tied embeddings over the first and last stage. Of weights
// that the optimizer changed, z1 gathers what kernels read for the next step of
// a call, and the masters at its end.
#pragma once

#include "models/parallel/background.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "models/parallel/tp_shared_grads.hpp"
#include "models/parallel/zero1_partition.hpp"
#include "models/sync/replica_sync.hpp"
#include "net/collectives/stream_collectives.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::models {

class GradientSync final : public ReplicaSync {
public:
  /// Keeps references to the parameters and the backend.
  GradientSync(const LocalModel& part, Parameters& parameters,
               Backend& backend);

  void begin(const Groups& groups) override;
  void last_backward() override;
  void after_backward(std::int64_t layer) override;
  void finish() override;
  void weights_changed() override;
  void gather_weights(WeightReader reader) override;
  void end() override;
  double sum_over_parts(double mine) override;
  std::vector<std::int64_t> passes(std::vector<std::int64_t> own) override;
  bool another_pass(bool own) override;

private:
  struct Unit { // embedding, layer, or final norm and head (plans::UnitRun)
    std::int32_t layer = 0;
    std::int64_t begin = 0; ///< in the gradient plane
    std::int64_t end = 0;
    bool is_dealt = false; ///< experts of some dp ranks
  };
  struct Tied { // a box that first and last stage share
    std::int64_t offset = 0;
    std::int64_t count = 0;
  };
  /// Weights that the optimizer changed since they were gathered.
  enum class Ungathered : std::uint8_t { nothing, masters, all };
  struct Cut { // with z1
    Zero1Partition units;
    Ungathered ungathered = Ungathered::nothing;
  };

  /// Queues the sums of units from the last unsummed one down to `layer`.
  void sum_down_to(std::int64_t layer);
  void sum_unit(std::size_t index);
  /// Returns whether the groups of all units have streams; they then agree.
  bool have_streams();
  void start_sum(std::size_t index);
  /// Orders the thread's kernels after all sums that were started.
  void end_sums();
  void sum_over_owners();

  Parameters& parameters_;
  Backend& backend_;
  std::optional<Cut> cut_;
  std::vector<Unit> units_;  ///< in model order
  std::size_t unsummed_ = 0; ///< units before this index are not yet
                             ///< summed
  bool begun_ = false;       ///< the last backward has begun
  Groups groups_;
  std::shared_ptr<net::Collectives> dp_; ///< set while units may be summed
  struct Started {
    net::StreamCollectives* group = nullptr;
    net::StreamTicket ticket;
  };
  /// Sums on streams; nullopt: the groups have none.
  std::optional<std::vector<Started>> started_;
  Background background_{[this] { backend_.enter(); }};
  std::vector<Tied> tied_;
  TpSharedGrads shared_;
};

} // namespace troupe::models
