// Collectives of one mesh axis on raw memory. All members call the same
// operations in the same order; each member is driven by one thread at a time.
// Sums are taken in rank order, so every transport gives the same bits on every
// rank (I8); bf16 accumulates in fp32. Every call has a name and a deadline on
// progress, and abort() wakes whoever waits (I7): it throws FailureError with
// the first cause. After a failure the group is dead and every call throws.
#pragma once

#include "config/dtype.hpp"
#include "config/error.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::net {

class Collectives {
public:
  virtual ~Collectives() = default;

  virtual std::uint32_t rank() const noexcept = 0;
  virtual std::uint32_t size() const noexcept = 0;

  /// data [count] becomes the sum over all members' data; f32, f64, bf16, i32
  /// or i64.
  virtual void all_reduce_sum(void* data, std::size_t count, DType dtype,
                              const char* name)
    = 0;
  /// all [size * count] becomes every member's `mine` [count] in rank order.
  /// `mine` may be this rank's place in `all`.
  virtual void all_gather(const void* mine, void* all, std::size_t count,
                          DType dtype, const char* name)
    = 0;
  /// mine [count] becomes this rank's part of the sum of all [size * count].
  /// `mine` may be this rank's place in `all`; `all` is left as it was else.
  virtual void reduce_scatter_sum(const void* all, void* mine,
                                  std::size_t count, DType dtype,
                                  const char* name)
    = 0;
  /// data [count] becomes that of rank `root`.
  virtual void broadcast(void* data, std::size_t count, DType dtype,
                         std::uint32_t root, const char* name)
    = 0;
  /// Returns when every member came.
  virtual void barrier(const char* name) = 0;

  /// Ends the group, from any thread: members here and elsewhere that wait now
  /// or later throw FailureError. The first failure is kept.
  virtual void abort(const Failure& failure) noexcept = 0;
};

} // namespace troupe::net
