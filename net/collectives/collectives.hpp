// Collectives of one mesh axis on raw memory. All members call the same
// operations in the same order; each member is driven by one thread at a time.
// Sums are taken in rank order, so every transport yields the same bits on
// every rank (I8); bf16 accumulates in fp32. Every call has a name and a
// deadline on progress, and abort() wakes all waiting members (I7): they throw
// FailureError with the root cause. After a failure the group is dead and every
// call throws.
#pragma once

#include "config/base/dtype.hpp"
#include "config/base/error.hpp"
#include "net/collectives/pieces.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::net {

class StreamCollectives;

class Collectives {
public:
  virtual ~Collectives() = default;

  virtual std::uint32_t rank() const noexcept = 0;
  virtual std::uint32_t size() const noexcept = 0;

  /// All-reduce (sum) of data [count]; f32, f64, bf16, i32 or i64.
  virtual void all_reduce_sum(void* data, std::size_t count, DType dtype,
                              const char* name)
    = 0;
  /// All-gather of every member's `mine` [count] into all [size * count], in
  /// rank order. `mine` may be this rank's part of `all`.
  virtual void all_gather(const void* mine, void* all, std::size_t count,
                          DType dtype, const char* name)
    = 0;
  /// Reduce-scatter (sum) of all [size * count]: mine [count] becomes this
  /// rank's part. `mine` may be this rank's part of `all`; the rest of `all` is
  /// unchanged.
  virtual void reduce_scatter_sum(const void* all, void* mine,
                                  std::size_t count, DType dtype,
                                  const char* name)
    = 0;
  /// Broadcast of data [count] from rank `root`.
  virtual void broadcast(void* data, std::size_t count, DType dtype,
                         std::uint32_t root, const char* name)
    = 0;
  /// Sends and receives the pieces of all members, with bounded staging memory.
  /// Members whose lists do not fit fail by name before any byte is sent.
  virtual void exchange(const Pieces& pieces, const char* name) = 0;
  /// Returns once every member has arrived.
  virtual void barrier(const char* name) = 0;

  /// Returns the group's calls in the order of a device's streams, for memory
  /// like `data`; null: it has none, as all groups of hosts. All members ask
  /// alike: the first time they connect.
  virtual StreamCollectives* on_streams(const void* /*data*/) {
    return nullptr;
  }

  /// Returns why the group has ended, without waiting; nullopt: it has not.
  /// Looks for members that are gone. May be called from any thread.
  virtual std::optional<Failure> failure() = 0;
  /// Ends the group, from any thread: waiting and later calls of all members
  /// throw FailureError. The first failure is kept.
  virtual void abort(const Failure& failure) noexcept = 0;
};

} // namespace troupe::net
