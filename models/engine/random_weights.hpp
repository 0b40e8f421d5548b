// Random numbers in the memory of devices that are measured: drawn once, and
// copied by the device, since drawing billions takes the host minutes and it
// could not write them to a GPU's memory one by one.
#pragma once

#include "models/kernels/aligned_floats.hpp"
#include "models/kernels/typed_ptr.hpp"

#include <cstdint>

namespace troupe::models {

class Backend;
class Parameters;

/// A block of normally distributed numbers on a device, which the thread has
/// entered and which outlives it.
class RandomNumbers {
public:
  /// Draws as many numbers as needed to fill `most`, and not too many.
  RandomNumbers(Backend& backend, std::int64_t most);
  /// Writes the block to `to`, again and again.
  void fill(TypedPtr to, std::int64_t count);

private:
  Backend& backend_;
  AlignedFloats block_;
  std::int64_t count_;
};

/// Fills weights with values as large as those of a model that begins to train,
/// so that activations keep their magnitude through it and back: values that
/// vanish become denormal, on which processors are slower than on anything in a
/// run. The thread has entered the backend, which is idle afterwards.
void fill_weights(Parameters& parameters, Backend& backend);

} // namespace troupe::models
