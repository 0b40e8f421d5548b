// The tp group as forward and backward see it: which rows of the residual
// stream are on this rank, how partial sums of a row-parallel product become
// the stream again, and how the stream becomes the input of a column-parallel
// product. With a single rank all of it does nothing: pointers pass through and
// no byte moves. It also names the dp ranks that a layer's experts are dealt
// to.
//
// Two forms (Megatron): plain - every rank keeps the whole stream, sums are
// all-reduces; split (`s`, sequence parallel) - rank i keeps ceil(T / size)
// rows, and an all-reduce becomes a reduce-scatter at the end of sums and an
// all-gather at the start of products.
//
// T packed tokens, H hidden.
#pragma once

#include "models/kernels/typed_ptr.hpp"

#include <cstdint>

namespace troupe::net {
class AllToAll;
class Collectives;
} // namespace troupe::net

namespace troupe::models {

class Backend;
struct RunContext;

/// A range of the T packed tokens.
struct TokenRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class TensorPeers {
public:
  /// Creates a group of one.
  TensorPeers() = default;
  /// Uses the tp group of a run; `split`: tokens of the stream are split.
  TensorPeers(const RunContext& context, Backend& backend, bool split = false);

  std::uint32_t size() const {
    return size_;
  }
  std::uint32_t rank() const {
    return rank_;
  }
  bool alone() const {
    return size_ == 1;
  }
  /// Returns true on the rank that adds, and counts the gradient of, whatever
  /// exists in full on every rank.
  bool first() const {
    return rank_ == 0;
  }
  bool split() const {
    return split_;
  }
  /// Returns the dp ranks that have a layer's experts between them; null: the
  /// tp group has all of them.
  net::AllToAll* expert_group() const {
    return experts_;
  }

  /// Returns the rows of the stream that are on this rank.
  TokenRange own(std::int64_t tokens) const;
  /// Returns the rows of a gathered stream, padding included (>= tokens).
  std::int64_t gathered_rows(std::int64_t tokens) const;
  /// Returns true if this rank's partial sums start from its rows of the
  /// stream.
  bool adds_stream() const {
    return split_ || rank_ == 0;
  }

  /// All-reduces (sum) x [count] over the tp group.
  void sum(TypedPtr x, std::int64_t count, const char* name) const;
  /// Reduces partial sums [gathered rows, H] to this rank's rows of the stream.
  /// Plain form: `partial` is `stream`.
  void to_stream(TypedPtr partial, TypedPtr stream, std::int64_t tokens,
                 std::int64_t width, const char* name) const;
  /// Returns the whole stream [T, H]: `stream` itself, or gathered into `room`.
  ConstTypedPtr gather(ConstTypedPtr stream, TypedPtr room, std::int64_t tokens,
                       std::int64_t width, const char* name) const;
  /// All-gathers `mine` [count] of each rank into all [size, count], in rank
  /// order.
  void collect(ConstTypedPtr mine, TypedPtr all, std::int64_t count,
               const char* name) const;

private:
  net::Collectives* group_ = nullptr; ///< null: a single rank
  net::AllToAll* experts_ = nullptr;
  Backend* backend_ = nullptr; ///< of the exchanged memory
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  bool split_ = false;
};

} // namespace troupe::models
