// z3: the weights of a unit (embedding, layer, final norm and head) are
// gathered from the copies before forward or backward uses them, into the
// windows of plans/unit_windows.hpp; the next unit comes on a thread beside
// while this one computes, and takes the place of the one before. Backward adds
// a unit's gradient up in the other plane's window; its sum over the copies is
// scattered to the owners, and added to what earlier micro-batches gave, while
// the unit before it computes.
//
// Every gather and sum has all copies, so all of them make the same passes: a
// copy with fewer micro-batches makes the rest without samples.
#pragma once

#include "models/internal/background.hpp"
#include "models/model_part.hpp"
#include "models/parameters.hpp"
#include "models/replica_sync.hpp"
#include "models/shared_boxes.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::models {

class UnitFlow final : public ReplicaSync {
public:
  /// Keeps references to both.
  UnitFlow(const ModelPart& part, Parameters& parameters, Compute& compute);

  void begin(const Groups& groups) override;
  std::vector<std::int64_t> passes(std::vector<std::int64_t> own) override;
  bool another_pass(bool own) override;
  void idle_forward() override;
  void idle_backward() override;
  void before_forward(std::int64_t layer) override;
  void before_backward(std::int64_t layer) override;
  void after_backward(std::int64_t layer) override;
  void finish() override;
  void weights_changed() override;
  double sum_over_parts(double mine) override;

private:
  struct Piece {             // of this copy's part of a unit
    std::int64_t held = 0;   ///< in the plane
    std::int64_t window = 0; ///< in the window
    std::int64_t count = 0;
  };
  struct Unit {
    plans::UnitWindow window;
    std::vector<Piece> own;
    SharedBoxes shared;
    bool over_stages = false;
  };
  /// What stands in a place of a window, or will when the job is done.
  struct Place {
    std::optional<std::size_t> unit;
    std::uint64_t job = 0;
  };
  static constexpr std::size_t num_places = 3;

  std::optional<std::size_t> find(std::int64_t layer) const;
  /// Whether the last unit reads the embedding as its head.
  bool tied() const;
  void bring(std::size_t unit);   ///< begins it, unless it is here
  void await(std::size_t unit);   ///< brings it and waits
  void open(std::size_t unit);    ///< zeros for its gradient
  void scatter(std::size_t unit); ///< begins to sum its gradient
  void gather_own(const Unit& unit);
  void sum_own(const Unit& unit);

  Parameters& parameters_;
  Compute& compute_;
  std::int64_t last_layer_ = 0; ///< that of the final norm and head
  bool first_stage_ = true;
  std::vector<Unit> units_; ///< in model order
  Groups groups_;
  Place weights_[num_places];
  Place gradients_[num_places];
  std::optional<Background> background_;
};

} // namespace troupe::models
