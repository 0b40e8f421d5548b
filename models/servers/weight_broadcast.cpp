#include "models/servers/weight_broadcast.hpp"

#include "config/base/base64.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe::models {

namespace {

constexpr int nccl_f32 = 7;
constexpr int nccl_sum_of_ranks = 0;
constexpr int nccl_still_in_progress = 7;
constexpr unsigned cuda_own_stream = 1; // cudaStreamNonBlocking
constexpr int cuda_still_running = 600;
constexpr int cuda_to_device = 1; // cudaMemcpyHostToDevice
/// Interval at which NCCL and the stream are asked how far they are.
constexpr std::chrono::microseconds broadcast_look{50};

std::size_t sent_bytes(const SentTensor& tensor) {
  std::size_t count = 1;
  for (const auto size : tensor.shape)
    count *= static_cast<std::size_t>(size);
  return count * sizeof(float);
}

} // namespace

/// Memory of the GPU that one tensor after the other passes through.
class WeightBroadcast::GpuBlock {
public:
  GpuBlock(WeightBroadcast& owner, std::size_t size_bytes)
    : library_(owner.library_) {
    owner.check_cuda(library_.blocks.take(&data_, size_bytes),
                     fmt::format("taking {} bytes of the GPU", size_bytes));
  }
  ~GpuBlock() {
    library_.blocks.give(data_);
  }
  GpuBlock(const GpuBlock&) = delete;
  GpuBlock& operator=(const GpuBlock&) = delete;
  void* data() const {
    return data_;
  }

private:
  const net::NcclLibrary& library_;
  void* data_ = nullptr;
};

WeightBroadcast::WeightBroadcast(WeightBroadcastSpec spec)
  : spec_(std::move(spec)),
    library_(*spec_.library) {
  const auto need = [&](bool has, const std::string& why) {
    if (!has)
      throw FailureError({.code = Errc::io,
                          .who = spec_.who,
                          .what = "NCCL cannot be used: " + why,
                          .cause = ""});
  };
  need(library_.why_not.empty(), library_.why_not);
  need(library_.groups.get_id(&id_) == 0, "it makes no id");
}

WeightBroadcast::~WeightBroadcast() {
  abort({.code = Errc::aborted, .who = spec_.who, .what = "", .cause = ""});
  if (stream_ != nullptr)
    library_.cuda.drop_stream(stream_);
}

std::string WeightBroadcast::id() const {
  return to_base64(std::string_view(id_.bytes, sizeof id_.bytes));
}

void WeightBroadcast::join(std::uint32_t num_ranks) {
  check_cuda(library_.cuda.set_device(spec_.gpu), "choosing the GPU");
  check_cuda(library_.cuda.make_stream(&stream_, cuda_own_stream),
             "making a stream");
  const auto joining = fmt::format("joining {} ranks", num_ranks);
  {
    Lock lock(mutex_);
    deadline_ = AwakeClock::now() + spec_.progress_deadline;
    if (failure_)
      throw FailureError(*failure_);
    net::NcclConfig config;
    config.blocking = 0;
    const int result = library_.groups.init_configured(
      &communicator_, static_cast<int>(num_ranks), id_, 0, &config);
    wait_until_started(lock, result, joining);
  }
  const GpuBlock element(*this, sizeof(float));
  const float zero = 0;
  check_cuda(library_.blocks.copy(element.data(), &zero, sizeof zero,
                                  cuda_to_device, stream_),
             "copying to the GPU");
  run("summing one element", [&] {
    return library_.all_reduce(element.data(), element.data(), 1, nccl_f32,
                               nccl_sum_of_ranks, communicator_, stream_);
  });
}

void WeightBroadcast::send(std::span<const std::byte> file,
                           std::span<const SentTensor> tensors) {
  std::size_t largest = 0;
  for (const auto& tensor : tensors)
    largest = std::max(largest, sent_bytes(tensor));
  if (largest == 0)
    return;
  check_cuda(library_.cuda.set_device(spec_.gpu), "choosing the GPU");
  const GpuBlock block(*this, largest);
  for (const auto& tensor : tensors)
    send_one(block, tensor, file.subspan(tensor.offset, sent_bytes(tensor)));
}

/// Waits for each tensor: a copy into a block that is still being sent would
/// block where no abort is seen.
void WeightBroadcast::send_one(const GpuBlock& block, const SentTensor& tensor,
                               std::span<const std::byte> bytes) {
  check_cuda(library_.blocks.copy(block.data(), bytes.data(), bytes.size(),
                                  cuda_to_device, stream_),
             tensor.name);
  run(tensor.name, [&] {
    return library_.broadcast(block.data(), block.data(),
                              bytes.size() / sizeof(float), nccl_f32, 0,
                              communicator_, stream_);
  });
}

/// Runs `start` and waits until the stream has done it.
template <class Start>
void WeightBroadcast::run(const std::string& what, const Start& start) {
  Lock lock(mutex_);
  deadline_ = AwakeClock::now() + spec_.progress_deadline;
  if (failure_)
    throw FailureError(*failure_);
  wait_until_started(lock, start(), what);
  wait_until_done(lock, what);
}

void WeightBroadcast::wait_until_started(Lock& lock, int result,
                                         const std::string& what) {
  while (result == nccl_still_in_progress) {
    look_again(lock, what);
    if (const int asked = library_.groups.async_error(communicator_, &result);
        asked != 0)
      result = asked;
  }
  if (result != 0)
    fail(lock, Errc::io, what + ": " + library_.error_text(result));
}

void WeightBroadcast::wait_until_done(Lock& lock, const std::string& what) {
  for (;;) {
    const int state = library_.cuda.query_stream(stream_);
    if (state == 0)
      return;
    if (state != cuda_still_running)
      fail(lock, Errc::io, fmt::format("{}: CUDA error {}", what, state));
    library_.cuda.clear_error();
    int error = 0;
    library_.groups.async_error(communicator_, &error);
    if (error != 0 && error != nccl_still_in_progress)
      fail(lock, Errc::io, what + ": " + library_.error_text(error));
    look_again(lock, what);
  }
}

/// Lets a moment pass in which the group may be aborted.
void WeightBroadcast::look_again(Lock& lock, const std::string& what) {
  if (AwakeClock::now() >= deadline_)
    fail(lock, Errc::deadline,
         fmt::format("{}: no end within {} ms", what,
                     spec_.progress_deadline.count()));
  aborted_.wait_for(lock, broadcast_look);
  if (failure_)
    throw FailureError(*failure_);
}

void WeightBroadcast::check_cuda(int result, const std::string& what) {
  if (result == 0)
    return;
  library_.cuda.clear_error();
  Lock lock(mutex_);
  fail(lock, Errc::io, fmt::format("{}: CUDA error {}", what, result));
}

void WeightBroadcast::fail(Lock& lock, Errc code, const std::string& what) {
  const Failure failure{
    .code = code, .who = spec_.who, .what = "NCCL: " + what, .cause = ""};
  lock.unlock();
  abort(failure);
  throw FailureError(failure);
}

void WeightBroadcast::abort(const Failure& failure) noexcept {
  net::NcclCommunicator communicator = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_)
      failure_ = failure;
    std::swap(communicator, communicator_);
  }
  aborted_.notify_all();
  if (communicator != nullptr)
    library_.groups.abort(communicator);
}

std::optional<Failure> WeightBroadcast::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

} // namespace troupe::models
