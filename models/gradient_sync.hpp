// Sums the gradient plane over the owners of each box, after which every owner
// has the whole gradient of what it holds (DESIGN 5). First over the copies
// with other samples (dp), unit by unit from the last to the first, each as
// soon as backward is done with it, on a thread beside backward; with z each
// copy gets the sums of its own part of a unit. Then boxes that tensor peers
// share (norms, biases of split products, key-value heads with more peers than
// heads) are gathered into one buffer and summed with one call, and tied
// embeddings over the pipeline's ends. After the optimizer's step, z gathers
// the weights.
#pragma once

#include "models/aligned_floats.hpp"
#include "models/internal/background.hpp"
#include "models/model_part.hpp"
#include "models/parameters.hpp"
#include "models/run_context.hpp"
#include "models/transformer.hpp"
#include "models/unit_cut.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::models {

class GradientSync final : public LayerGate {
public:
  /// Keeps references to both.
  GradientSync(const ModelPart& part, Parameters& parameters);

  /// The last backward of an optimizer step comes: as a LayerGate, sums what
  /// it is done with.
  void begin(const Groups& groups);
  void after_backward(std::int64_t layer) override;
  /// Sums the rest and waits. Every device of the replica calls it once an
  /// optimizer step, with or without backward and `begin`.
  void finish(const Groups& groups);
  /// After the optimizer's step: with z, the weights that others updated.
  void gather_weights(const Groups& groups);
  /// The sum of what every device of a replica counts (its first-owned boxes)
  /// over the tensor peers and the stages, with z over the copies too.
  double sum_over_parts(double mine, const Groups& groups) const;

private:
  struct Shared {            // one box that tensor peers share
    std::int64_t offset = 0; ///< in the gradient plane
    std::int64_t count = 0;
    std::int64_t place = 0; ///< in the buffer, which has the whole parameter
  };

  struct Unit { // embedding, layer, or final norm and head
    std::int32_t layer = 0;
    std::int64_t begin = 0; ///< in the gradient plane
    std::int64_t end = 0;
  };

  /// Hands units from the last not yet summed down to `layer` to the thread.
  void sum_down_to(std::int64_t layer);
  void sum_over_tensor(net::Collectives& tp);
  void sum_over_ends(net::Collectives& ends);

  Parameters& parameters_;
  std::optional<UnitCut> cut_; ///< with z
  std::vector<Unit> units_;    ///< in model order
  std::size_t unsummed_ = 0;   ///< units before this one
  bool begun_ = false;
  std::shared_ptr<net::Collectives> dp_; ///< of this step; null: alone
  Background background_;
  std::vector<Shared> tied_; ///< boxes that first and last stage share
  std::vector<Shared> shared_;
  AlignedFloats buffer_;
  std::int64_t buffer_size_ = 0;
};

} // namespace troupe::models
