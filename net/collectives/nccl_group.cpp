#include "net/collectives/nccl_group.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::net {

namespace {

constexpr unsigned nccl_own_stream = 1; // cudaStreamNonBlocking
constexpr int cuda_not_ready = 600;
constexpr int nccl_remote_error = 6;
constexpr int nccl_in_progress = 7;
/// Interval at which NCCL and the stream are asked how far they are.
constexpr std::chrono::microseconds nccl_look{50};

} // namespace

NcclGroup::NcclGroup(Spec spec, const NcclLibrary& library)
  : spec_(std::move(spec)),
    library_(library) {}

NcclGroup::~NcclGroup() {
  if (communicator_ != nullptr)
    library_.groups.abort(communicator_);
  if (stream_ != nullptr)
    library_.cuda.drop_stream(stream_);
}

void NcclGroup::join(const NcclId& id, NcclPlace place) {
  const auto joining = fmt::format("joining {} ranks", place.size);
  const char* const name = joining.c_str();
  use_device();
  if (stream_ == nullptr)
    check_cuda(library_.cuda.make_stream(&stream_, nccl_own_stream),
               "making a stream");
  const auto deadline = Clock::now() + spec_.progress_deadline;
  NcclConfig config;
  config.blocking = 0;
  const int result = use([&](NcclCommunicator& made) {
    return library_.groups.init_configured(&made, static_cast<int>(place.size),
                                           id, static_cast<int>(place.rank),
                                           &config);
  });
  wait_until_started(result, name, deadline);
  has_joined_ = true;
}

void NcclGroup::run(const char* name, const Start& start) {
  const auto deadline = Clock::now() + spec_.progress_deadline;
  launch(name, start, stream_);
  wait_until_done(name, deadline);
}

void NcclGroup::launch(const char* name, const Start& start,
                       CudaStream stream) {
  use_device();
  const auto deadline = Clock::now() + spec_.progress_deadline;
  const int result = use([&](NcclCommunicator& communicator) {
    return start(communicator, stream);
  });
  wait_until_started(result, name, deadline);
}

std::optional<Failure> NcclGroup::trouble(const std::string& name) {
  try {
    const int error
      = use([&](NcclCommunicator& communicator) { return asked(communicator); },
            IfInUse::leave);
    if (error != 0 && error != nccl_in_progress)
      return Failure{Errc::peer_lost, spec_.who,
                     fmt::format("{}: {}", name, library_.error_text(error)),
                     ""};
  } catch (const FailureError& error) {
    return error.failure();
  }
  return std::nullopt;
}

void NcclGroup::abort(const Failure& failure) noexcept {
  NcclCommunicator communicator = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_)
      failure_ = failure;
    std::swap(communicator, communicator_);
  }
  changed_.notify_all();
  if (communicator != nullptr)
    library_.groups.abort(communicator);
}

/// Calls NCCL with the communicator, which an abort meanwhile leaves to us.
/// What it waits for is that another thread has asked NCCL for its state.
template <class Use>
int NcclGroup::use(const Use& call, IfInUse then) {
  NcclCommunicator mine = nullptr;
  {
    std::unique_lock lock(mutex_);
    if (then == IfInUse::leave && is_in_use_ && !failure_)
      return nccl_in_progress;
    changed_.wait(lock, [&] { return failure_ || !is_in_use_; });
    if (failure_)
      throw FailureError{*failure_};
    is_in_use_ = true;
    mine = std::exchange(communicator_, nullptr);
  }
  const int result = call(mine);
  std::unique_lock lock(mutex_);
  is_in_use_ = false;
  if (!failure_) {
    communicator_ = mine;
    lock.unlock();
    changed_.notify_all();
    return result;
  }
  lock.unlock();
  if (mine != nullptr)
    library_.groups.abort(mine);
  throw FailureError{*failure_};
}

void NcclGroup::wait_until_started(int result, const char* name,
                                   Clock::time_point deadline) {
  while (result == nccl_in_progress) {
    result = state();
    if (result == nccl_in_progress)
      look_again(name, deadline);
  }
  check(result, name);
}

/// Asks NCCL before the stream: a peer may leave once the stream is done.
void NcclGroup::wait_until_done(const char* name, Clock::time_point deadline) {
  for (;;) {
    const int error = state();
    const int done = library_.cuda.query_stream(stream_);
    if (done == 0)
      return throw_if_failed(); // an abort ends what is on the stream
    library_.cuda.clear_error();
    if (done != cuda_not_ready)
      fail(Errc::io, name, fmt::format("CUDA error {}", done));
    if (error != 0 && error != nccl_in_progress)
      fail(Errc::peer_lost, name, library_.error_text(error));
    look_again(name, deadline);
  }
}

/// Returns NCCL's result of what is in progress.
int NcclGroup::state() {
  return use(
    [&](NcclCommunicator& communicator) { return asked(communicator); });
}

int NcclGroup::asked(NcclCommunicator communicator) const {
  int error = 0;
  const int result = library_.groups.async_error(communicator, &error);
  return result != 0 ? result : error;
}

/// Lets a moment pass in which the group may be aborted.
void NcclGroup::look_again(const char* name, Clock::time_point deadline) {
  if (const auto failure = spec_.failure_of_others())
    throw FailureError{*failure};
  if (Clock::now() >= deadline)
    fail(Errc::deadline, name,
         fmt::format("no end within {} ms", spec_.progress_deadline.count()));
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, nccl_look);
  if (failure_)
    throw FailureError{*failure_};
}

void NcclGroup::use_device() const {
  check_cuda(library_.cuda.set_device(spec_.device), "choosing the GPU");
}

std::optional<Failure> NcclGroup::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void NcclGroup::throw_if_failed() {
  const std::lock_guard lock(mutex_);
  if (failure_)
    throw FailureError{*failure_};
}

void NcclGroup::check(int result, const char* name) const {
  if (result != 0)
    fail(result == nccl_remote_error ? Errc::peer_lost : Errc::io, name,
         library_.error_text(result));
}

void NcclGroup::check_cuda(int result, const char* name) const {
  if (result == 0)
    return;
  library_.cuda.clear_error();
  fail(Errc::io, name, fmt::format("CUDA error {}", result));
}

void NcclGroup::fail(Errc code, const char* name,
                     const std::string& what) const {
  // a member that gave up ended the group of all: it knows the cause
  if (const auto failure = spec_.failure_of_others())
    throw FailureError{*failure};
  throw FailureError{{code, spec_.who, fmt::format("{}: {}", name, what), ""}};
}

} // namespace troupe::net
