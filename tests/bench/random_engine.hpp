// Engines over random weights and rows of random tokens, on the device that the
// command line names. Weights are copies of one block of random numbers that
// are made on the device: billions of numbers drawn one by one take minutes.
#pragma once

#include "models/engine/engine.hpp"
#include "models/kernels/aligned_floats.hpp"
#include "net/base/rows.hpp"

#include "bench.hpp"

#include <memory>

namespace troupe::bench {

/// Returns the backend of `--device` for the device of this index; GPUs are
/// shared if there are fewer.
models::Backend& backend_of(const Options& options, std::uint32_t index = 0);

/// Random numbers that are written to a device's memory again and again.
class RandomBlock {
public:
  /// Keeps a reference: `backend` must outlive this.
  explicit RandomBlock(models::Backend& backend);
  /// Writes the next `count` numbers, after the last of the block the first.
  void write(float* to, std::int64_t count);

private:
  models::Backend& backend_;
  models::AlignedFloats block_;
  std::int64_t at_ = 0;
};

/// Returns an engine of random weights of this shape as `spec` says, in the
/// dtype and on the device of the command line; its folder held config.json
/// alone.
std::unique_ptr<models::Engine> random_engine(const ModelShape& shape,
                                              const Options& options,
                                              models::Engine::Spec spec);

/// Returns `count` rows of `length` random tokens each.
net::Rows random_rows(const std::string& column, std::int64_t count,
                      std::int64_t length, std::int64_t vocab_size);

} // namespace troupe::bench
