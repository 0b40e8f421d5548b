// The tp group as forward and backward see it: which rows of the residual
// stream are on this rank, how partial sums of a row-parallel product become
// the stream again, and how the stream becomes the input of a column-parallel
// product. With a single rank all of it does nothing: pointers pass through and
// no byte moves. It also names the dp ranks that a layer's experts are dealt
// to, and those that share the tokens of their samples.
//
// Once a pass has called `use_streams`, calls are work of the device where the
// group has streams (net/collectives/stream_collectives.hpp): they can be
// captured, and who reads what came from them checks the group. Else they wait
// for the device and for the other members.
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
#include <functional>

namespace troupe::net {
class AllToAll;
class Collectives;
class StreamCollectives;
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
  /// Returns the cp group, whose ranks gather keys; null: none.
  net::Collectives* context_group() const {
    return context_;
  }

  /// Returns the largest part of a rank if the ranks share `count`.
  std::int64_t share_of(std::int64_t count) const {
    return (count + size_ - 1) / size_;
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

  // -- calls on streams --
  /// Makes the calls from here on work of the thread's stream, if they can be
  /// for memory like `data`. All members ask alike.
  void use_streams(const void* data);
  /// Returns whether a device can capture passes of the group.
  bool can_be_captured() const {
    return alone() || streams_ != nullptr;
  }
  /// Launches a graph that holds captured calls.
  void launch(const char* name, const std::function<void()>& graph) const;
  /// Meets the other members; returns true if all of them say so.
  bool all_agree(bool is_so, const char* name) const;
  /// Meets them after a capture of this group's calls; returns true if all have
  /// their graph. Else nobody launches one, and its calls count as not made.
  bool all_captured(bool has_graph) const;
  /// Throws the failure of a group whose calls nobody waits for: to be asked
  /// once the host has waited for what it reads.
  void check() const;
  /// Returns what tells groups apart.
  const void* identity() const {
    return group_;
  }

  // -- calls --
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
  net::Collectives* group_ = nullptr;         ///< null: a single rank
  net::StreamCollectives* streams_ = nullptr; ///< null: calls wait
  net::AllToAll* experts_ = nullptr;
  net::Collectives* context_ = nullptr;
  Backend* backend_ = nullptr; ///< of the exchanged memory
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  bool split_ = false;
};

} // namespace troupe::models
