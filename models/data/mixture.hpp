// The order of rows of several files with weights: which file a position of the
// run reads, and which of its rows. A function of position and seed alone, so a
// resumed run goes on with the same rows (I8), without a table of the past.
// File 0 and the rest share the positions by their weights, the rest is shared
// likewise by file 1 and those after it, and so on. Among two, position p goes
// to the first where round(share * p) steps up: of any p positions each file
// has its share to within half a row per file, and so has each mini-batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::models {

/// A file of a mixture.
struct MixedFile {
  std::uint32_t rows = 0; ///< usable ones; > 0
  double weight = 0;      ///< > 0; in any unit, the same for all
};

class Mixture {
public:
  /// Creates the order of files whose rows follow each other; without `shuffle`
  /// each file's rows come in its order.
  Mixture(std::vector<MixedFile> files, std::uint64_t seed, bool shuffle);

  /// A position's file, and how many rows of that file come before it.
  struct Turn {
    std::size_t file = 0;
    std::uint64_t before = 0;
    bool operator==(const Turn&) const = default;
  };
  Turn turn_at(std::uint64_t position) const;
  /// Returns the row, counted through all files. Not thread-safe: keeps each
  /// file's last order.
  std::uint32_t row_at(std::uint64_t position);

  /// Returns the rows of all files.
  std::uint32_t num_rows() const noexcept {
    return num_rows_;
  }

private:
  struct File {
    std::uint32_t rows = 0;
    std::uint32_t first = 0; ///< row of all files
    std::uint64_t share = 0; ///< of `of`, which it shares with later files
    std::uint64_t of = 0;
    std::uint64_t cached_epoch = UINT64_MAX;
    std::vector<std::uint32_t> cached_order = {};
  };

  std::vector<File> files_;
  std::uint64_t seed_;
  bool shuffle_;
  std::uint32_t num_rows_ = 0;
};

} // namespace troupe::models
