// Code common to all host transports: checks of arguments, the span of each
// call in the trace (I7), and ranges of a buffer.
#pragma once

#include "net/collectives/host_collectives.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe::net {

/// A half-open range of elements.
struct ElementRange {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t size() const noexcept {
    return last - first;
  }
};

/// Returns part `index` of `parts` of `count` elements, cut at whole cache
/// lines.
ElementRange part_of(std::size_t count, std::size_t index, std::size_t parts,
                     std::size_t element_bytes);

class HostCollectives : public Collectives {
public:
  explicit HostCollectives(GroupSpec spec);

  std::uint32_t rank() const noexcept final {
    return spec_.index;
  }
  std::uint32_t size() const noexcept final {
    return static_cast<std::uint32_t>(spec_.members.size());
  }
  void all_reduce_sum(void* data, std::size_t count, DType dtype,
                      const char* name) final;
  void all_gather(const void* mine, void* all, std::size_t count, DType dtype,
                  const char* name) final;
  void reduce_scatter_sum(const void* all, void* mine, std::size_t count,
                          DType dtype, const char* name) final;
  void broadcast(void* data, std::size_t count, DType dtype, std::uint32_t root,
                 const char* name) final;
  void exchange(const Pieces& pieces, const char* name) final;
  void barrier(const char* name) final;

protected:
  struct Call {
    std::size_t count = 0;
    DType dtype = DType::u8;
    std::uint32_t root = 0;
    const char* name = "";
    std::size_t bytes() const noexcept {
      return count * size_bytes(dtype);
    }
  };
  virtual void do_all_reduce(std::byte* data, const Call& call) = 0;
  virtual void do_all_gather(const std::byte* mine, std::byte* all,
                             const Call& call)
    = 0;
  virtual void do_reduce_scatter(const std::byte* all, std::byte* mine,
                                 const Call& call)
    = 0;
  virtual void do_broadcast(std::byte* data, const Call& call) = 0;
  virtual void do_barrier(const Call& call) = 0;

  const GroupSpec spec_;
};

} // namespace troupe::net
