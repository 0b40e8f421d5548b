// z3: the weights of a unit (embedding, layer, final norm and head) are
// gathered over dp before forward or backward uses them, into the windows of
// plans/weights/gather_buffers.hpp; the next unit is prefetched while this one
// computes, and replaces the one before. Backward accumulates a unit's gradient
// in the gradient window; its sum over dp is scattered to the owners, and added
// to the sums of earlier micro-batches, while the preceding unit computes.
// Where dp has streams both are calls on them, and the host waits for neither;
// else a thread makes them. Where products read rounded weights, each rank
// rounds its part before they are gathered.
//
// Every gather and sum is collective over dp, so all ranks make the same
// passes: a rank with fewer micro-batches makes the rest without samples.
#pragma once

#include "models/parallel/background.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "models/parallel/tp_shared_grads.hpp"
#include "models/parallel/unrounded_gather.hpp"
#include "models/sync/replica_sync.hpp"
#include "net/collectives/stream_collectives.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::models {

class Zero3Flow final : public ReplicaSync {
public:
  /// Keeps references to the parameters and the backend.
  Zero3Flow(const LocalModel& part, Parameters& parameters, Backend& backend);

  void begin(const Groups& groups) override;
  std::vector<std::int64_t> passes(std::vector<std::int64_t> own) override;
  bool another_pass(bool own) override;
  void before_forward(std::int64_t layer) override;
  void before_backward(std::int64_t layer) override;
  void after_backward(std::int64_t layer) override;
  void finish() override;
  void weights_changed() override;
  double sum_over_parts(double mine) override;

private:
  struct Piece {             // of this rank's part of a unit
    std::int64_t held = 0;   ///< offset in the plane
    std::int64_t window = 0; ///< offset in the window
    std::int64_t count = 0;
    bool for_products = true; ///< read as products read weights
  };
  struct Unit {
    TpSharedGrads shared;
    plans::GatherBuffer window = {};
    UnroundedGather unrounded = {}; ///< used where weights are rounded
    std::vector<Piece> own = {};
    bool over_stages = false;
  };
  /// Content of a place of a window, present once the job of the thread, or the
  /// call on a stream, is done.
  struct Place {
    std::optional<std::size_t> unit;
    std::uint64_t job = 0;
    const Unit* under_way = nullptr; ///< that the call gathers or sums
    net::StreamTicket call = {};
  };
  static constexpr std::size_t num_places = 3;

  std::optional<std::size_t> find(std::int64_t layer) const;
  /// Returns true if the last unit reads the embedding as its head.
  bool tied() const;
  void bring(std::size_t unit);    ///< starts to gather it, unless it is here
  void await(std::size_t unit);    ///< gathers it and waits
  void open(std::size_t unit);     ///< clears a place for its gradient
  void scatter(std::size_t unit);  ///< starts to sum its gradient
  void copy_own(const Unit& unit); ///< to where it is gathered
  /// Calls gather(numbers of all ranks, numbers of each) for each gather of a
  /// unit's weights.
  template <class Gather>
  void for_gathers(const Unit& unit, const Gather& gather);
  void take_unrounded(const Unit& unit); ///< to the window
  /// Returns whether some numbers of the unit are gathered in fp32 beside the
  /// rounded ones.
  bool has_unrounded(const Unit& unit) const;
  void gather_own(const Unit& unit);
  void sum_own(const Unit& unit);
  void add_own(const Unit& unit); ///< from the window
  /// Takes what a call on a stream gathered or summed, if there was one.
  void settle_weights(Place& place);
  void settle_gradients(Place& place);

  Parameters& parameters_;
  Backend& backend_;
  std::int64_t last_layer_ = 0; ///< index of the final norm and head
  bool first_stage_ = true;
  std::vector<Unit> units_; ///< in model order
  Groups groups_;
  Place weights_[num_places];
  Place gradients_[num_places];
  std::vector<AlignedFloats> unrounded_;      ///< by place, packed
  net::StreamCollectives* streams_ = nullptr; ///< of dp; null: it has none
  std::optional<Background> background_;
};

} // namespace troupe::models
