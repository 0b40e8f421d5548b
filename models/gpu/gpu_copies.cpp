#include "models/gpu/gpu_copies.hpp"

#ifdef TROUPE_CUDA_BUILD
#include "config/base/log.hpp"
#include "net/base/gpus.hpp"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <fmt/format.h>

#include <map>
#include <mutex>
#endif

namespace troupe::models {

#ifdef TROUPE_CUDA_BUILD

namespace {

using c10::cuda::CUDAStream;

class GpuCopy final : public net::PendingCopy {
public:
  /// Ends where the stream ends now.
  explicit GpuCopy(const CUDAStream& stream) : stream_(stream) {
    done_.record(stream);
  }
  void before_kernels() override {
    before(c10::cuda::getDefaultCUDAStream(stream_.device_index()));
  }
  void wait() override {
    done_.synchronize();
  }
  void before(const CUDAStream& later) {
    done_.block(later);
  }
  const CUDAStream& stream() const {
    return stream_;
  }

private:
  CUDAStream stream_;
  c10::cuda::CUDAEvent done_;
};

struct GpuCopyStreams {
  explicit GpuCopyStreams(c10::DeviceIndex device)
    : reads(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device)),
      writes(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device)) {}

  CUDAStream reads;
  CUDAStream writes;
};

/// Returns the streams of the GPU that has the block; another process's block
/// is the current one's.
const GpuCopyStreams& gpu_copy_streams(const void* block) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, GpuCopyStreams> known;
  const int owner = net::gpu_of_memory(block);
  const auto device = owner < 0 ? c10::cuda::current_device()
                                : static_cast<c10::DeviceIndex>(owner);
  const std::lock_guard lock(mutex);
  return known.try_emplace(device, device).first->second;
}

std::shared_ptr<net::PendingCopy> start_gpu_copy(const CUDAStream& stream,
                                                 const void* from, void* to,
                                                 std::size_t size_bytes,
                                                 net::PendingCopy* after) {
  const c10::cuda::CUDAGuard device(stream.device_index());
  c10::cuda::CUDAEvent kernels;
  kernels.record(c10::cuda::getDefaultCUDAStream(stream.device_index()));
  kernels.block(stream);
  if (after != nullptr)
    static_cast<GpuCopy*>(after)->before(stream);
  C10_CUDA_CHECK(
    cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault, stream));
  return std::make_shared<GpuCopy>(stream);
}

bool lock_for_gpus(void* data, std::size_t size_bytes) {
  const cudaError_t result
    = cudaHostRegister(data, size_bytes, cudaHostRegisterPortable);
  if (result == cudaSuccess)
    return true;
  static_cast<void>(cudaGetLastError()); // the next launch would report it
  log::models.warn(fmt::format(
    "{:.3f} GB of the host's memory stay pageable ({}): copies to and from "
    "GPUs are slower, and wait",
    static_cast<double>(size_bytes) / 1e9, cudaGetErrorString(result)));
  return false;
}

void unlock_for_gpus(void* data) {
  C10_CUDA_CHECK_WARN(cudaHostUnregister(data));
}

void keep_gpu_memory(void* block, net::PendingCopy& copy) {
  const CUDAStream& stream = static_cast<GpuCopy&>(copy).stream();
  auto* const allocator = c10::cuda::CUDACachingAllocator::get();
  c10::DataPtr borrowed(block, block, allocator->raw_deleter(),
                        stream.device());
  allocator->recordStream(borrowed, stream);
  static_cast<void>(borrowed.release_context());
}

} // namespace

const net::CopyStream* gpu_copies() {
  static constexpr net::CopyStream copies{
    &lock_for_gpus, &unlock_for_gpus,
    [](const void* from, void* to, std::size_t size_bytes,
       net::PendingCopy* after) {
      return start_gpu_copy(gpu_copy_streams(from).reads, from, to, size_bytes,
                            after);
    },
    [](const void* from, void* to, std::size_t size_bytes,
       net::PendingCopy* after) {
      return start_gpu_copy(gpu_copy_streams(to).writes, from, to, size_bytes,
                            after);
    },
    &keep_gpu_memory};
  return &copies;
}

#else

const net::CopyStream* gpu_copies() {
  return nullptr;
}

#endif

} // namespace troupe::models
