#include "models/gpu/gpu_graph_recorder.hpp"

#include <c10/core/Device.h>

#ifdef TROUPE_CUDA_BUILD
#include "config/base/error.hpp"
#include "config/base/log.hpp"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#endif

namespace troupe::models {

#ifdef TROUPE_CUDA_BUILD

namespace {

/// The memory pool of captured graphs. Its id is not used again once the last
/// graph is gone.
struct GpuPool {
  at::cuda::MempoolId_t id = at::cuda::graph_pool_handle();
};

/// libtorch's graph. If CUDA refuses to begin or end a capture, libtorch 2.11
/// leaves its allocators in it: they would refuse the pool's next capture, and
/// an emptied cache would be an assertion. Then this ends it.
class CudaGraph : public at::cuda::CUDAGraph {
public:
  ~CudaGraph() {
    if (capture_dev_ == UNDEFINED_DEVICE || capture_ended_)
      return;
    namespace device = c10::cuda::CUDACachingAllocator;
    at::HostAllocator& host = *at::getHostAllocator(at::kCUDA);
    end([&] { device::endAllocateToPool(capture_dev_, mempool_id_); });
    end([&] { device::releasePool(capture_dev_, mempool_id_); });
    end([&] { host.end_allocate_to_pool(mempool_id_); });
    end([&] { host.release_pool(mempool_id_); });
  }
  CudaGraph() = default;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

private:
  /// Runs a step. One that libtorch has done by itself says so by an error.
  template <class Step>
  static void end(const Step& step) noexcept {
    try {
      step();
    } catch (const std::exception& error) {
      log::models.debug(error.what());
    }
  }
};

class GpuGraph final : public GraphCapture {
public:
  explicit GpuGraph(std::shared_ptr<const GpuPool> pool)
    : pool_(std::move(pool)) {}

  // Thread-local mode: other threads may meanwhile do what a graph cannot hold.
  void note(const std::function<void()>& kernels) {
    graph_.capture_begin(pool_->id, cudaStreamCaptureModeThreadLocal);
    try {
      kernels();
    } catch (...) {
      give_up();
      throw;
    }
    graph_.capture_end();
  }
  void run() override {
    graph_.replay();
  }

private:
  void give_up() noexcept {
    try {
      graph_.capture_end();
    } catch (const c10::Error&) { // the first error is rethrown
    }
  }

  std::shared_ptr<const GpuPool> pool_;
  CudaGraph graph_;
};

/// A GPU's one capture stream: products keep memory for each stream that they
/// ever ran on. GPUs capture at the same time, since tensor peers may meet in
/// NCCL while they do.
struct GpuNotes {
  c10::cuda::CUDAStream stream;
  std::mutex one_capture;
};

GpuNotes& gpu_notes(c10::Device device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, std::unique_ptr<GpuNotes>> known;
  const std::lock_guard lock(mutex);
  auto& found = known[device.index()];
  if (!found)
    found.reset(new GpuNotes{
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()),
      {}});
  return *found;
}

class GpuRecorder final : public GraphRecorder {
public:
  explicit GpuRecorder(c10::Device device) : device_(device) {}

  std::unique_ptr<GraphCapture>
  record(const std::function<void()>& kernels) override {
    GpuNotes& notes = gpu_notes(device_);
    const std::lock_guard lock(notes.one_capture);
    const c10::cuda::CUDAStreamGuard on_stream(notes.stream);
    auto pool = pool_.lock();
    if (!pool)
      pool_ = pool = std::make_shared<const GpuPool>();
    auto graph = std::make_unique<GpuGraph>(pool);
    try {
      graph->note(kernels);
    } catch (const c10::Error& error) { // of libtorch's kernels
      return none(error.what_without_backtrace());
    } catch (const FailureError& error) { // of ours
      return none(error.what());
    }
    return graph;
  }

private:
  static std::unique_ptr<GraphCapture> none(const std::string& why) {
    log::models.warn("no CUDA graphs, kernels of decoding run one by one: "
                     + why);
    return nullptr;
  }

  c10::Device device_;
  std::weak_ptr<const GpuPool> pool_; ///< pool of its graphs, while any exist
};

} // namespace

std::unique_ptr<GraphRecorder> gpu_recorder(c10::Device device) {
  return std::make_unique<GpuRecorder>(device);
}

#else

std::unique_ptr<GraphRecorder> gpu_recorder(c10::Device /*device*/) {
  return nullptr;
}

#endif

} // namespace troupe::models
