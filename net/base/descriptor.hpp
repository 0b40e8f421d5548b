// Owns a file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace troupe::net {

class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0)
      ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept
    : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const noexcept {
    return number_;
  }
  /// Releases ownership.
  [[nodiscard]] int release() noexcept {
    return std::exchange(number_, -1);
  }

private:
  int number_ = -1;
};

} // namespace troupe::net
