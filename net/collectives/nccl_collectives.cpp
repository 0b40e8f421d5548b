#include "net/collectives/nccl_collectives.hpp"

#include "config/base/awake_clock.hpp"
#include "config/base/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::net {

namespace {

using NcclClock = AwakeClock;

constexpr int nccl_sum = 0;
constexpr unsigned nccl_own_stream = 1; // cudaStreamNonBlocking
constexpr int cuda_not_ready = 600;
constexpr int nccl_in_progress = 7;
/// Interval at which a stream is polled for completion.
constexpr std::chrono::microseconds nccl_look{50};

int nccl_type(DType dtype) {
  switch (dtype) {
  case DType::u8:
    return 1;
  case DType::i32:
    return 2;
  case DType::i64:
    return 4;
  case DType::f32:
    return 7;
  case DType::f64:
    return 8;
  case DType::bf16:
    return 9;
  default:
    throw InvariantError("no such numbers in a collective: "
                         + std::string(to_string(dtype)));
  }
}

class NcclCollectives final : public Collectives {
public:
  NcclCollectives(const NcclMember& member, const NcclLibrary& library)
    : member_(member),
      library_(library) {}
  ~NcclCollectives() override {
    if (communicator_ != nullptr)
      library_.groups.abort(communicator_);
    if (stream_ != nullptr)
      library_.cuda.drop_stream(stream_);
  }
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  std::uint32_t rank() const noexcept override {
    return member_.host->rank();
  }
  std::uint32_t size() const noexcept override {
    return member_.host->size();
  }

  void all_reduce_sum(void* data, std::size_t count, DType dtype,
                      const char* name) override {
    if (!uses_nccl(data))
      return member_.host->all_reduce_sum(data, count, dtype, name);
    run(name, [&](NcclCommunicator communicator) {
      return library_.all_reduce(data, data, count, nccl_type(dtype), nccl_sum,
                                 communicator, stream_);
    });
  }
  void all_gather(const void* mine, void* all, std::size_t count, DType dtype,
                  const char* name) override {
    if (!uses_nccl(all))
      return member_.host->all_gather(mine, all, count, dtype, name);
    run(name, [&](NcclCommunicator communicator) {
      return library_.all_gather(mine, all, count, nccl_type(dtype),
                                 communicator, stream_);
    });
  }
  void reduce_scatter_sum(const void* all, void* mine, std::size_t count,
                          DType dtype, const char* name) override {
    if (!uses_nccl(all))
      return member_.host->reduce_scatter_sum(all, mine, count, dtype, name);
    run(name, [&](NcclCommunicator communicator) {
      return library_.reduce_scatter(all, mine, count, nccl_type(dtype),
                                     nccl_sum, communicator, stream_);
    });
  }
  void broadcast(void* data, std::size_t count, DType dtype, std::uint32_t root,
                 const char* name) override {
    if (!uses_nccl(data))
      return member_.host->broadcast(data, count, dtype, root, name);
    if (size() == 2)
      return pass_on(data, count, dtype, root, name);
    run(name, [&](NcclCommunicator communicator) {
      return library_.broadcast(data, data, count, nccl_type(dtype),
                                static_cast<int>(root), communicator, stream_);
    });
  }
  void barrier(const char* name) override {
    member_.host->barrier(name);
  }

  void abort(const Failure& failure) noexcept override {
    NcclCommunicator communicator = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (!failure_)
        failure_ = failure;
      std::swap(communicator, communicator_);
    }
    aborted_.notify_all();
    member_.host->abort(failure);
    if (communicator != nullptr)
      library_.groups.abort(communicator);
  }

private:
  /// A member's GPU, and whether the member has NCCL.
  struct Offer {
    std::array<std::int32_t, 4> gpu{};
    std::int32_t has_nccl = 0;
  };

  /// Agrees in the first call of the group: all members make the same calls.
  bool uses_nccl(const void* pointer) {
    if (!agreed_)
      agreed_ = agree();
    return *agreed_ && library_.on_gpu(pointer);
  }

  /// Sends from rank `root` to the other one: pipeline stages, for which no
  /// ring of the group is made.
  void pass_on(void* data, std::size_t count, DType dtype, std::uint32_t root,
               const char* name) {
    const int peer = 1 - static_cast<int>(rank());
    run(name, [&](NcclCommunicator communicator) {
      return rank() == root ? library_.send(data, count, nccl_type(dtype), peer,
                                            communicator, stream_)
                            : library_.receive(data, count, nccl_type(dtype),
                                               peer, communicator, stream_);
    });
  }

  bool agree() {
    constexpr std::size_t words = sizeof(Offer) / sizeof(std::int32_t);
    const Offer mine{member_.gpu, library_.why_not.empty() ? 1 : 0};
    std::vector<Offer> all(size());
    member_.host->all_gather(&mine, all.data(), words, DType::i32,
                             "whether to use NCCL");
    const bool all_have_nccl = std::ranges::all_of(
      all, [](const Offer& offer) { return offer.has_nccl == 1; });
    std::ranges::sort(all, {}, &Offer::gpu);
    const bool one_each
      = std::ranges::adjacent_find(all, {}, &Offer::gpu) == all.end();
    if (all_have_nccl && one_each)
      return true;
    if (rank() == 0)
      log::net.warn(std::string("numbers of GPUs go through the host: ")
                    + (all_have_nccl ? "members of the group share a GPU"
                                     : "a member of the group has no NCCL"));
    return false;
  }

  /// Connects in the first call of the group; rank 0 creates the unique id.
  void connect() {
    NcclId id{};
    if (rank() == 0)
      check(library_.groups.get_id(&id), "making a group");
    member_.host->broadcast(&id, sizeof id / sizeof(std::int32_t), DType::i32,
                            0, "name of an NCCL group");
    check(library_.cuda.make_stream(&stream_, nccl_own_stream),
          "making a stream");
    NcclCommunicator made = nullptr;
    check(library_.groups.init_rank(&made, static_cast<int>(size()), id,
                                    static_cast<int>(rank())),
          "joining a group");
    const std::lock_guard lock(mutex_);
    communicator_ = made;
  }

  /// Waits for all members, then runs `start` and waits for its stream.
  template <class Start>
  void run(const char* name, const Start& start) {
    check(library_.cuda.set_device(member_.device), name);
    if (stream_ == nullptr)
      connect();
    member_.host->barrier(name);
    const auto deadline = NcclClock::now() + member_.progress_deadline;
    std::unique_lock lock(mutex_);
    throw_if_aborted();
    check(start(communicator_), name);
    for (int state = cuda_not_ready; state == cuda_not_ready;) {
      state = library_.cuda.query_stream(stream_);
      if (state != 0 && state != cuda_not_ready)
        fail(lock, Errc::io, name, fmt::format("CUDA error {}", state));
      if (state == 0)
        return;
      library_.cuda.clear_error();
      check_progress(lock, deadline, name);
      aborted_.wait_for(lock, nccl_look);
      throw_if_aborted();
    }
  }

  void check_progress(std::unique_lock<std::mutex>& lock,
                      NcclClock::time_point deadline, const char* name) {
    int error = 0;
    library_.groups.async_error(communicator_, &error);
    if (error != 0 && error != nccl_in_progress)
      fail(lock, Errc::peer_lost, name, library_.error_text(error));
    if (NcclClock::now() >= deadline)
      fail(
        lock, Errc::deadline, name,
        fmt::format("no end within {} ms", member_.progress_deadline.count()));
  }

  [[noreturn]] void fail(std::unique_lock<std::mutex>& lock, Errc code,
                         const char* name, const std::string& what) {
    const Failure failure{code, fmt::format("NCCL, rank {}", rank()),
                          fmt::format("{}: {}", name, what), ""};
    lock.unlock();
    abort(failure);
    throw FailureError{failure};
  }

  void throw_if_aborted() const {
    if (failure_)
      throw FailureError{*failure_};
  }

  void check(int result, const char* name) const {
    if (result != 0)
      throw FailureError{
        {Errc::io, fmt::format("NCCL, rank {}", rank()),
         fmt::format("{}: {}", name, library_.error_text(result)), ""}};
  }

  const NcclMember member_;
  const NcclLibrary& library_;
  std::optional<bool> agreed_; ///< whether the group uses NCCL
  CudaStream stream_ = nullptr;
  std::mutex mutex_;
  std::condition_variable aborted_;
  NcclCommunicator communicator_ = nullptr;
  std::optional<Failure> failure_;
};

} // namespace

std::shared_ptr<Collectives> make_nccl_collectives(const NcclMember& member,
                                                   const NcclLibrary& library) {
  return std::make_shared<NcclCollectives>(member, library);
}

} // namespace troupe::net
