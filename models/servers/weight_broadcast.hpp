// Weights of a device to all ranks of a vLLM server by NCCL, as vLLM's own
// backend `nccl` takes them, without our plugin. We are rank 0 and make the id,
// with which the server's ranks join; all sum one element, and at each update
// every tensor is broadcast in the order in which the update names it. Tensors
// are copied from the memory file to a block of the GPU first. `abort`, of any
// thread, ends whatever is under way (net/collectives/nccl_group.hpp).
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "models/servers/server_request.hpp"
#include "net/collectives/nccl_group.hpp"
#include "net/collectives/nccl_library.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::models {

struct WeightBroadcastSpec {
  std::string who; ///< for messages: "weights for vLLM server of device 3"
  int gpu = 0;     ///< its number in this process
  /// Most time that joining, or a tensor, may take.
  std::chrono::milliseconds progress_deadline = defaults::pull_deadline;
  const net::NcclLibrary* library = &net::NcclLibrary::machine();
};

class WeightBroadcast {
public:
  /// Makes the id of a group. Throws FailureError (io) without NCCL.
  explicit WeightBroadcast(WeightBroadcastSpec spec);

  /// Returns the id as the others get it: base64.
  std::string id() const;
  /// Returns "2.28.9": a group takes only ranks of one version.
  std::string nccl_version() const {
    return library_.version();
  }

  /// Joins a group of this many ranks, once. Throws FailureError: what NCCL or
  /// CUDA says, deadline, or what the group was aborted with.
  void join(std::uint32_t num_ranks);
  /// Broadcasts these tensors of the file. Throws as `join`.
  void send(std::span<const std::byte> file,
            std::span<const SentTensor> tensors);
  /// Ends the group for good; the first failure is kept.
  void abort(const Failure& failure) noexcept;
  /// Returns why the group has ended, if it has.
  std::optional<Failure> failure() const;

private:
  class GpuBlock;

  void send_one(const GpuBlock& block, const SentTensor& tensor,
                std::span<const std::byte> bytes);
  void run(const GpuBlock& block, std::span<const std::byte> bytes,
           const std::string& what, const net::NcclGroup::Start& start);
  template <class Body>
  void ending_all_on_failure(const Body& body);

  const WeightBroadcastSpec spec_;
  const net::NcclLibrary& library_;
  net::NcclId id_{};
  net::NcclGroup group_;
};

} // namespace troupe::models
