// A weight as a backend keeps it for generation, whose products have few rows
// and read every weight once per token.
#pragma once

#include <cstdint>

namespace troupe::models {

/// A weight [out, in] in the layout that small products of generation read
/// fastest.
class PreparedWeight {
public:
  virtual ~PreparedWeight() = default;
  virtual std::int64_t in() const = 0;
  virtual std::int64_t out() const = 0;
  /// Returns the address that captured kernels keep of it.
  virtual const void* place() const = 0;
  /// Returns whether it reads the weight that it was made of: that must stay.
  virtual bool is_view() const {
    return false;
  }
};

} // namespace troupe::models
