// The experts that generation recorded, as the engine reads them:
// `routed_experts` of each token, k per layer with experts. A call that reads
// this key sends those tokens to the same experts (routing replay, arXiv
// 2510.11370); of tokens without a record the router chooses.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/engine/row_reader.hpp"
#include "models/transformer/shared_prompt.hpp"

#include <span>

namespace troupe::models {

class ReplayReader {
public:
  /// Returns whether the rows have recorded experts.
  static bool in(const net::Rows& rows);
  ReplayReader(const net::Rows& rows, const ModelShape& whole)
    : experts_(rows.at("routed_experts")),
      shape_(whole) {}

  /// Sets the experts of `packed`, which has the sequences of `rows` in this
  /// order. A shared prompt takes those of its first sequence with a record.
  /// Throws ConfigError for records of another model.
  void read(std::span<const std::size_t> rows, PackedSequences& packed) const;

private:
  void take(std::span<const std::int32_t> own, std::size_t width,
            std::size_t first, PackedSequences& packed) const;

  ColumnReader experts_;
  const ModelShape& shape_;
};

} // namespace troupe::models
