// Shared by attention and its gradient: masks and the split into pieces of
// work. A key-value head of a sequence and of all sequences that continue it is
// one piece that no other piece touches, so sums have one order for any thread
// count. Blocks of rows begin at multiples of their length, counted with the
// tokens of the continued sequence: a row's arithmetic does not depend on
// whether its prefix is shared.
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/attention.hpp"
#include "models/kernels/attention_pieces.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace troupe::models {

inline constexpr std::int64_t attention_block_rows = 96;

// Sequences `first` to `last - 1`; all but the first continue the first. Or
// pieces, that share keys.
struct AttentionFamily {
  std::size_t first = 0;
  std::size_t last = 0;
  double cost = 0;
};

struct AttentionTask {
  AttentionFamily family;
  std::int64_t kv_head = 0;
  double cost = 0;
};

// Runs contiguous shares of about equal cost on the threads.
void attention_for_each(const AttentionShape& shape,
                        const std::function<void(const AttentionTask&)>& body);
void attention_for_each(const PieceShape& shape,
                        const std::function<void(const AttentionTask&)>& body);

// Returns the pieces by the keys that they share.
std::vector<AttentionFamily> piece_families(const PieceShape& shape);

// The part of the buffers that one head of one sequence reads.
struct HeadView {
  std::int64_t start = 0;      // first token
  std::int64_t length = 0;     // tokens
  std::int64_t past_start = 0; // first token of the sequence that it continues
  std::int64_t past = 0;       // tokens of that sequence
  std::int64_t q = 0;          // columns in the buffer
  std::int64_t k = 0;
  std::int64_t v = 0;
  std::int64_t context = 0; // column in the context

  std::int64_t total() const {
    return past + length;
  }
  // Returns the buffer row of token `i` of the whole sequence.
  std::int64_t token(std::int64_t i) const {
    return i < past ? past_start + i : start + i - past;
  }
};

// Returns the view of query head `member` of the task's key-value head, for
// sequence `s` of its family.
HeadView attention_head(const AttentionShape& shape, const AttentionTask& task,
                        std::size_t s, std::int64_t member);

// The same of a piece: tokens before its queries have keys alone, and columns
// of k and v are those of the gathered keys.
HeadView piece_head(const PieceShape& shape, const AttentionPiece& piece,
                    std::int64_t kv_head, std::int64_t member);

// Keys and values of a whole sequence: in place, or, if it continues another
// sequence, copied next to each other.
struct HeadKeys {
  const float* k = nullptr;
  const float* v = nullptr;
  std::int64_t stride = 0;
};

HeadKeys attention_keys(const AttentionShape& shape, const float* qkv,
                        const HeadView& view, AlignedFloats& scratch);

// A block of rows of the whole sequence, limited to the view's own rows.
struct RowBlock {
  std::int64_t aligned = 0; // its first row if no rows were shared
  std::int64_t row = 0;
  std::int64_t rows = 0;

  static RowBlock first(const HeadView& view) {
    return of(view, view.past / attention_block_rows * attention_block_rows);
  }
  RowBlock next(const HeadView& view) const {
    return of(view, aligned + attention_block_rows);
  }
  static RowBlock of(const HeadView& view, std::int64_t aligned) {
    const std::int64_t row = std::max(aligned, view.past);
    return {aligned, row,
            std::min(aligned + attention_block_rows, view.total()) - row};
  }
};

// The keys that each row of a block sees. Rows are counted from `first` of the
// sequence, keys from `origin`.
struct BlockMask {
  std::int64_t first = 0;
  std::int64_t origin = 0;
  std::int64_t window = 0; // 0: none

  std::int64_t begin(std::int64_t row) const {
    const std::int64_t oldest = window > 0 ? first + row + 1 - window : 0;
    return std::max(oldest, origin) - origin;
  }
  std::int64_t end(std::int64_t row) const {
    return first + row + 1 - origin;
  }
};

BlockMask attention_mask(const AttentionShape& shape, const RowBlock& block);

} // namespace troupe::models
