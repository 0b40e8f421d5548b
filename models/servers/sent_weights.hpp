// A whole model, or its adapters, in a memory file that servers on this host
// may read: a safetensors file by the names of the checkpoint (or PEFT's), with
// a sum per tensor beside it. A copy, so that families whose files store
// matrices in another form need no case of their own, and so that training may
// go on while a server still reads.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/servers/server_request.hpp"
#include "net/base/page_block.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

class Parameters;
struct TensorToStore;

class SentWeights {
public:
  /// Copies the weights of a device that holds the whole model, or where `lora`
  /// exists its adapters. Throws FailureError (io) if this system has no memory
  /// files.
  void take(const Parameters& parameters, const LoraShape& lora = {});
  /// Copies those of these shapes from `plane`, which is in the layout of a
  /// device that holds the whole model.
  void take(const std::vector<ParameterShape>& shapes,
            std::span<const std::byte> plane, const LoraShape& lora = {});

  /// Returns the file, which exists as long as this object. Its tensors are in
  /// their order, without gaps.
  std::string path() const;
  const std::vector<SentTensor>& tensors() const {
    return tensors_;
  }
  /// Returns the factor of adapters' products; nothing of a whole model.
  std::optional<double> adapter_scale() const {
    return adapter_scale_;
  }
  /// Returns the content of the file, which lasts until the next `take`.
  std::span<const std::byte> bytes() const;
  /// Returns the number of bytes of all tensors.
  std::uint64_t num_bytes() const {
    return num_bytes_;
  }

private:
  void copy_tensors(std::span<const TensorToStore> from);

  net::PageBlock block_;
  std::vector<SentTensor> tensors_;
  std::uint64_t num_bytes_ = 0;
  std::optional<double> adapter_scale_;
};

} // namespace troupe::models
