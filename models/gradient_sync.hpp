// Sums the gradient plane over the owners of each box, after which every owner
// has the whole gradient of what it holds (DESIGN 5). First over the copies
// with other samples (dp), unit by unit from the last to the first, each as
// soon as backward is done with it, on a thread beside backward; with z1 each
// copy gets the sums of its own part of a unit. Then boxes that tensor peers
// share, and tied embeddings over the pipeline's ends. After the optimizer's
// step, z1 gathers the weights.
#pragma once

#include "models/internal/background.hpp"
#include "models/model_part.hpp"
#include "models/parameters.hpp"
#include "models/replica_sync.hpp"
#include "models/shared_boxes.hpp"
#include "models/unit_cut.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::models {

class GradientSync final : public ReplicaSync {
public:
  /// Keeps references to the parameters and what computes.
  GradientSync(const ModelPart& part, Parameters& parameters, Compute& compute);

  void begin(const Groups& groups) override;
  void last_backward() override;
  void after_backward(std::int64_t layer) override;
  void finish() override;
  void weights_changed() override;
  double sum_over_parts(double mine) override;

private:
  struct Unit { // embedding, layer, or final norm and head
    std::int32_t layer = 0;
    std::int64_t begin = 0; ///< in the gradient plane
    std::int64_t end = 0;
  };
  struct Tied { // a box that first and last stage share
    std::int64_t offset = 0;
    std::int64_t count = 0;
  };

  /// Hands units from the last not yet summed down to `layer` to the thread.
  void sum_down_to(std::int64_t layer);
  void sum_over_owners();

  Parameters& parameters_;
  Compute& compute_;
  std::optional<UnitCut> cut_; ///< with z1
  std::vector<Unit> units_;    ///< in model order
  std::size_t unsummed_ = 0;   ///< units before this one
  bool begun_ = false;         ///< the last backward
  Groups groups_;
  std::shared_ptr<net::Collectives> dp_; ///< while units may be summed
  Background background_;
  std::vector<Tied> tied_;
  SharedBoxes shared_;
};

} // namespace troupe::models
