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
constexpr int nccl_no_copy = 1;   // ncclUnhandledCudaError
constexpr int cuda_to_device = 1; // cudaMemcpyHostToDevice

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
  GpuBlock(const net::NcclLibrary& library, const std::string& who,
           std::size_t size_bytes)
    : library_(library) {
    const int result = library.blocks.take(&data_, size_bytes);
    if (result == 0)
      return;
    library.cuda.clear_error();
    throw FailureError(
      {.code = Errc::io,
       .who = who,
       .what = fmt::format("taking {} bytes of the GPU: CUDA error {}",
                           size_bytes, result),
       .cause = ""});
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
    library_(*spec_.library),
    group_({.who = spec_.who,
            .device = spec_.gpu,
            .progress_deadline = spec_.progress_deadline,
            .failure_of_others = [] { return std::nullopt; }},
           library_) {
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

std::string WeightBroadcast::id() const {
  return to_base64(std::string_view(id_.bytes, sizeof id_.bytes));
}

void WeightBroadcast::join(std::uint32_t num_ranks) {
  ending_all_on_failure([&] {
    group_.join(id_, {.rank = 0, .size = num_ranks});
    const GpuBlock element(library_, spec_.who, sizeof(float));
    const float zero = 0;
    run(element, std::as_bytes(std::span(&zero, 1)), "summing one element",
        [&](net::NcclCommunicator ranks, net::CudaStream stream) {
          return library_.all_reduce(element.data(), element.data(), 1,
                                     nccl_f32, nccl_sum_of_ranks, ranks,
                                     stream);
        });
  });
}

void WeightBroadcast::send(std::span<const std::byte> file,
                           std::span<const SentTensor> tensors) {
  std::size_t largest = 0;
  for (const auto& tensor : tensors)
    largest = std::max(largest, sent_bytes(tensor));
  if (largest == 0)
    return;
  ending_all_on_failure([&] {
    group_.use_device();
    const GpuBlock block(library_, spec_.who, largest);
    for (const auto& tensor : tensors)
      send_one(block, tensor, file.subspan(tensor.offset, sent_bytes(tensor)));
  });
}

/// Waits for each tensor: a copy into a block that is still being sent would
/// block where no abort is seen.
void WeightBroadcast::send_one(const GpuBlock& block, const SentTensor& tensor,
                               std::span<const std::byte> bytes) {
  run(block, bytes, tensor.name,
      [&](net::NcclCommunicator ranks, net::CudaStream stream) {
        return library_.broadcast(block.data(), block.data(),
                                  bytes.size() / sizeof(float), nccl_f32, 0,
                                  ranks, stream);
      });
}

/// Copies the bytes to the block, runs `start` after that and waits until the
/// stream has done it.
void WeightBroadcast::run(const GpuBlock& block,
                          std::span<const std::byte> bytes,
                          const std::string& what,
                          const net::NcclGroup::Start& start) {
  const auto name = "NCCL: " + what;
  group_.run(name.c_str(),
             [&](net::NcclCommunicator ranks, net::CudaStream stream) {
               return library_.blocks.copy(block.data(), bytes.data(),
                                           bytes.size(), cuda_to_device, stream)
                          == 0
                        ? start(ranks, stream)
                        : nccl_no_copy;
             });
}

template <class Body>
void WeightBroadcast::ending_all_on_failure(const Body& body) {
  try {
    body();
  } catch (const FailureError& error) {
    abort(error.failure());
    throw;
  }
}

void WeightBroadcast::abort(const Failure& failure) noexcept {
  group_.abort(failure);
}

std::optional<Failure> WeightBroadcast::failure() const {
  return group_.failure();
}

} // namespace troupe::models
