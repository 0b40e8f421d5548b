// Values of samples in a memory file that a child process opens by its path
// below /proc: columns of all samples, each with its lengths before its data.
#pragma once

#include "net/base/descriptor.hpp"

#include "troupe/sample.hpp"
#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>

namespace troupe::actors {

class PythonMemory {
public:
  /// Makes an empty file. Throws FailureError (io).
  PythonMemory();
  /// Returns a path that other processes of this user can open.
  std::string path() const;
  /// Writes the values of `keys` that samples have; returns where they are:
  /// [{lengths, data}], one per key.
  nlohmann::json write(std::span<const Sample> samples,
                       std::span<const KeyInfo> keys);
  /// Sets values of `keys` that a process has written at `places` on samples.
  /// Throws std::runtime_error if they are not all there.
  void read(const nlohmann::json& places, std::span<const KeyInfo> keys,
            std::span<Sample> samples) const;

private:
  std::string bytes_at(std::uint64_t begin, std::uint64_t size) const;

  net::Descriptor file_;
};

} // namespace troupe::actors
