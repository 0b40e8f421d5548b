#include "gloo_peer.hpp"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <cstdlib>

namespace troupe::bench {

struct GlooPeer::Group {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
};

bool GlooPeer::is_here() {
  // Gloo's flight recorder is shared by all groups of a process and crashes
  // where two threads record at once; no entries means no recorder.
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", 1);
  ::setenv("TORCH_NCCL_TRACE_BUFFER_SIZE", "0", 1);
  return true;
}

GlooPeer::GlooPeer(const std::string& file, std::uint32_t rank,
                   std::uint32_t ranks) {
  auto store
    = c10::make_intrusive<c10d::FileStore>(file, static_cast<int>(ranks));
  auto options
    = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds{60});
  options->devices.push_back(
    c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  group_
    = std::make_shared<Group>(Group{c10::make_intrusive<c10d::ProcessGroupGloo>(
      store, static_cast<int>(rank), static_cast<int>(ranks), options)});
}

void GlooPeer::all_reduce_sum(float* data, std::size_t count) {
  std::vector<at::Tensor> tensors{
    at::from_blob(data, {static_cast<std::int64_t>(count)})};
  group_->gloo->allreduce(tensors)->wait();
}

} // namespace troupe::bench
