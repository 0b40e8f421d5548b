// The tokens that a pass drew on the device, on their way to the host. The next
// pass may have them before the host does: it reads them where the draw wrote
// them.
#pragma once

#include "models/kernels/decode_token.hpp"
#include "models/kernels/pending_read.hpp"
#include "models/kernels/token_draw.hpp"
#include "models/parallel/tensor_peers.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::models {

class DrawnTokens {
public:
  /// Creates no tokens.
  DrawnTokens() = default;
  /// Creates those of the wanted rows of a draw over the peers' logits.
  DrawnTokens(std::vector<std::int64_t> rows, std::unique_ptr<PendingRead> draw,
              TensorPeers peers)
    : rows_(std::move(rows)),
      draw_(std::move(draw)),
      peers_(peers) {}

  /// Returns what stands for token i in the pass that follows its draw.
  std::int32_t id_in_next_pass(std::size_t i) const {
    return drawn_in(rows_.at(i));
  }
  /// Waits for the tokens, not for what was launched later. Throws the failure
  /// of the peers' group, whose calls may be work of streams.
  std::vector<DrawnToken> wait() const {
    std::vector<DrawnToken> found;
    if (rows_.empty())
      return found;
    const auto* all
      = reinterpret_cast<const DrawnToken*>(draw_->bytes().data());
    peers_.check();
    for (const std::int64_t row : rows_)
      found.push_back(all[row]);
    return found;
  }

private:
  std::vector<std::int64_t> rows_;
  std::unique_ptr<PendingRead> draw_;
  TensorPeers peers_;
};

} // namespace troupe::models
