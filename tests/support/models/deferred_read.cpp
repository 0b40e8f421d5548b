// Reads of the deferred device that the host waits for later.
#include "deferred_backend.hpp"

#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace troupe::testing {

using namespace models;

namespace {

/// A copy that is a kernel of the device. Whoever reads before it has run sees
/// bytes that are no numbers.
class DeferredRead final : public PendingRead {
public:
  DeferredRead(DeferredQueue& late, const float* from, std::int64_t count)
    : late_(late),
      bytes_(std::make_shared<Bytes>(
        static_cast<std::size_t>(count) * sizeof(float), std::byte{0xff})) {
    kernels_before_ = late_.later_with_tables(
      [from, to = bytes_] { std::memcpy(to->data(), from, to->size()); });
  }

  std::span<const std::byte> bytes() override {
    late_.run_until(kernels_before_);
    return *bytes_;
  }

private:
  using Bytes = std::vector<std::byte>;

  DeferredQueue& late_;
  std::shared_ptr<Bytes> bytes_;
  std::uint64_t kernels_before_ = 0; ///< those up to the copy
};

} // namespace

std::unique_ptr<PendingRead> DeferredBackend::read_later(const float* from,
                                                         std::int64_t count) {
  return std::make_unique<DeferredRead>(*this, from, count);
}

} // namespace troupe::testing
