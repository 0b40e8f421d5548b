// The tensor group as forward and backward see it: which rows of the residual
// stream live here, how partial sums of a product split by columns become the
// stream again, and how the stream becomes the input of a product split by
// rows. Alone, all of it is nothing: pointers go through and no byte moves.
//
// Two forms (Megatron): plain - every peer keeps the whole stream, sums are
// all-reduces; split (`s`) - peer i keeps ceil(T / size) rows, an all-reduce
// becomes a reduce-scatter where sums end and an all-gather where products
// begin.
//
// T packed tokens, H hidden.
#pragma once

#include <cstdint>

namespace troupe::net {
class Collectives;
} // namespace troupe::net

namespace troupe::models {

class Compute;
struct RunContext;

/// A range of the T packed tokens.
struct TokenRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

class TensorPeers {
public:
  /// Alone.
  TensorPeers() = default;
  /// The tensor group of a run; `split`: tokens of the stream are split.
  TensorPeers(const RunContext& context, Compute& compute, bool split = false);

  std::uint32_t size() const {
    return size_;
  }
  std::uint32_t rank() const {
    return rank_;
  }
  bool alone() const {
    return size_ == 1;
  }
  /// What exists on every peer in full is added, and its gradient counted, by
  /// the first one.
  bool first() const {
    return rank_ == 0;
  }
  bool split() const {
    return split_;
  }

  /// Rows of the stream that live here.
  TokenRange own(std::int64_t tokens) const;
  /// Rows that a gathered stream has, padding included (>= tokens).
  std::int64_t gathered_rows(std::int64_t tokens) const;
  /// Whether this peer's partial sums start from its rows of the stream.
  bool adds_stream() const {
    return split_ || rank_ == 0;
  }

  /// The sum of everybody's x [count], on everybody.
  void sum(float* x, std::int64_t count, const char* name) const;
  /// Partial sums [gathered rows, H] become this peer's rows of the stream.
  /// Plain form: `partial` is `stream`.
  void to_stream(float* partial, float* stream, std::int64_t tokens,
                 std::int64_t width, const char* name) const;
  /// The whole stream [T, H]: `stream` itself, or gathered into `room`.
  const float* gather(const float* stream, float* room, std::int64_t tokens,
                      std::int64_t width, const char* name) const;
  /// all [size, count] becomes everybody's mine [count] in rank order.
  void collect(const float* mine, float* all, std::int64_t count,
               const char* name) const;

private:
  net::Collectives* group_ = nullptr; ///< null: alone
  Compute* compute_ = nullptr;        ///< of what is exchanged
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  bool split_ = false;
};

} // namespace troupe::models
