// Memory of asio operations: a handler wrapped here has its operation in memory
// that is reused, whereas asio's own cache returns it to the heap as soon as
// operations of different sizes alternate.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <utility>

namespace troupe::net {

using OperationMemory = std::pmr::polymorphic_allocator<std::byte>;

/// Wraps `body` so that its operation is allocated in `memory`.
template <class Body>
class HandlerIn {
public:
  using allocator_type = OperationMemory;
  HandlerIn(OperationMemory memory, Body body)
    : memory_(memory),
      body_(std::move(body)) {}

  allocator_type get_allocator() const noexcept {
    return memory_;
  }
  template <class... Arguments>
  void operator()(Arguments&&... arguments) {
    body_(std::forward<Arguments>(arguments)...);
  }

private:
  OperationMemory memory_;
  Body body_;
};

} // namespace troupe::net
