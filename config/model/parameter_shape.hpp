// One parameter of a model: its size, layer and split over tp ranks, and its
// location in the family's checkpoints.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// Order of the rows of heads in a tensor of a checkpoint, if it is not that
/// of the parameter.
struct HeadRows {
  std::int64_t head_dim = 0; ///< 0: rows are in the parameter's order
  std::int64_t step = 0;     ///< rows of the tensor from a head to the next
  /// Leading rows of a head that the tensor has in neighbouring pairs, where
  /// the parameter has one half after the other (GLM's rotations).
  std::int64_t paired = 0;
  bool operator==(const HeadRows&) const = default;
};

/// Location of a parameter in a checkpoint.
struct StoredAs {
  std::string name;           ///< tensor's name; "": the parameter's
  bool transposed = false;    ///< [cols, rows] in the file
  std::int64_t first_row = 0; ///< offset in a tensor with several parameters
  std::int64_t rows = 0;      ///< that tensor's rows in the file; 0: same
  HeadRows heads = {};
  bool operator==(const StoredAs&) const = default;
  /// Returns the row of the tensor (its column, if transposed) that has the
  /// parameter's row.
  std::int64_t row_of(std::int64_t row) const;
};

struct ParameterShape {
  std::string name; ///< LLaMA's HF name in every family
  std::int64_t rows = 0;
  std::int64_t cols = 1; ///< 1 for vectors
  bool vector = false;
  std::int32_t layer = 0;     ///< -1: embedding; [0, L); L: final norm and head
  std::int8_t split_dim = -1; ///< tensor parallel: -1 whole, 0 rows, 1 columns
  bool decay = true;          ///< AdamW weight decay: two or more dimensions
  /// Corrections of experts' scores: changed by the experts' loads.
  bool balances = false;
  std::int32_t expert = -1; ///< among its layer's experts; -1: none
  /// Rows (or columns) that a split keeps together: the head dimension.
  std::int64_t split_unit = 1;
  StoredAs stored; ///< location in the family's checkpoints
  bool operator==(const ParameterShape&) const = default;
  std::int64_t num_elements() const {
    return rows * cols;
  }
  /// Returns the name of its tensor in a checkpoint.
  const std::string& file_name() const {
    return stored.name.empty() ? name : stored.name;
  }
};

} // namespace troupe
