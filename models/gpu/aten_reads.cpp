// Reads of aten_backend.hpp that the host waits for later: copies to
// page-locked memory in the order of the stream, each with an event after it.
#include "models/gpu/aten_backend.hpp"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <memory>
#include <span>

namespace troupe::models {

namespace {

// libtorch uses the page-locked memory again once the stream has written it,
// also if nobody waited.
class AtenRead final : public PendingRead {
public:
  explicit AtenRead(const at::Tensor& numbers)
    : copy_(at::empty(
      numbers.sizes(),
      numbers.options().device(at::kCPU).pinned_memory(numbers.is_cuda()))),
      done_(numbers.device().type()) {
    copy_.copy_(numbers, /*non_blocking=*/true);
    done_.record(c10::impl::getDeviceGuardImpl(numbers.device().type())
                   ->getStream(numbers.device()));
  }

  std::span<const std::byte> bytes() override {
    done_.synchronize();
    return {static_cast<const std::byte*>(copy_.const_data_ptr()),
            copy_.nbytes()};
  }

private:
  at::Tensor copy_;
  c10::Event done_;
};

} // namespace

std::unique_ptr<PendingRead> AtenBackend::read_later(const float* from,
                                                     std::int64_t count) {
  if (device_.is_cpu()) // its kernels have run
    return std::make_unique<ArrivedNumbers>(
      std::as_bytes(std::span(from, static_cast<std::size_t>(count))));
  return std::make_unique<AtenRead>(view(from, {count}));
}

} // namespace troupe::models
