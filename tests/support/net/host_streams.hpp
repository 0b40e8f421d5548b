// A group of hosts that has calls on streams, as a group of GPUs has: for
// kernels that run when they are called, as the CPU's do. What a stream may do
// beside the thread's kernels happens here as early as it may, when it is
// enqueued, or as late as it may, when the thread's stream joins it. So code
// that enqueues a call too early, or joins it too late, computes other numbers.
// Calls that others wait for before anyone joins them, such as a stage's sends,
// are made by a thread.
#pragma once

#include "net/collectives/collectives.hpp"
#include "net/collectives/stream_collectives.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <utility>

namespace troupe::testing {

enum class StreamPace : std::uint8_t { early, late, by_thread };

class HostStreams : public net::Collectives, public net::StreamCollectives {
public:
  struct Options {
    StreamPace pace = StreamPace::early;
    /// Counts calls beside the thread's kernels; null: nobody asks.
    std::atomic<std::size_t>* beside = nullptr;
    /// Counts those between them; null: nobody asks.
    std::atomic<std::size_t>* in_line = nullptr;
    /// Called before the nth graph of the group is launched, from 1.
    std::function<void(int launch, net::Collectives& group)> on_launch = {};
  };

  HostStreams(std::shared_ptr<net::Collectives> host, Options options)
    : host_(std::move(host)),
      options_(std::move(options)) {}
  ~HostStreams() override {
    if (options_.pace == StreamPace::by_thread)
      host_->abort({Errc::aborted, "test", "its group was closed", ""});
  }
  HostStreams(const HostStreams&) = delete;
  HostStreams& operator=(const HostStreams&) = delete;

  std::uint32_t rank() const noexcept override {
    return host_->rank();
  }
  std::uint32_t size() const noexcept override {
    return host_->size();
  }
  void all_reduce_sum(void* data, std::size_t count, DType dtype,
                      const char* name) override {
    host_->all_reduce_sum(data, count, dtype, name);
  }
  void all_gather(const void* mine, void* all, std::size_t count, DType dtype,
                  const char* name) override {
    host_->all_gather(mine, all, count, dtype, name);
  }
  void reduce_scatter_sum(const void* all, void* mine, std::size_t count,
                          DType dtype, const char* name) override {
    host_->reduce_scatter_sum(all, mine, count, dtype, name);
  }
  void broadcast(void* data, std::size_t count, DType dtype, std::uint32_t root,
                 const char* name) override {
    host_->broadcast(data, count, dtype, root, name);
  }
  void exchange(const net::Pieces& pieces, const char* name) override {
    host_->exchange(pieces, name);
  }
  void barrier(const char* name) override {
    host_->barrier(name);
  }
  net::StreamCollectives* on_streams(const void* /*data*/) override {
    return this;
  }
  std::optional<Failure> failure() override {
    return host_->failure();
  }
  void abort(const Failure& failure) noexcept override {
    host_->abort(failure);
  }

  net::StreamTicket all_reduce_sum(void* data, std::size_t count, DType dtype,
                                   const char* name,
                                   net::StreamOrder order) override {
    return enqueue(order,
                   [=, this] { all_reduce_sum(data, count, dtype, name); });
  }
  net::StreamTicket all_gather(const void* mine, void* all, std::size_t count,
                               DType dtype, const char* name,
                               net::StreamOrder order) override {
    return enqueue(order,
                   [=, this] { all_gather(mine, all, count, dtype, name); });
  }
  net::StreamTicket reduce_scatter_sum(const void* all, void* mine,
                                       std::size_t count, DType dtype,
                                       const char* name,
                                       net::StreamOrder order) override {
    return enqueue(
      order, [=, this] { reduce_scatter_sum(all, mine, count, dtype, name); });
  }
  net::StreamTicket broadcast(void* data, std::size_t count, DType dtype,
                              std::uint32_t root, const char* name,
                              net::StreamOrder order) override {
    return enqueue(order,
                   [=, this] { broadcast(data, count, dtype, root, name); });
  }
  void join(net::StreamTicket ticket) override {
    while (!waiting_.empty() && done_ < ticket.number)
      run_first();
  }
  void launch(const char* /*name*/,
              const std::function<void()>& graph) override {
    ++launches_;
    if (options_.on_launch)
      options_.on_launch(launches_, *host_);
    graph();
  }
  void end_capture(bool /*is_kept*/) override {}
  void check() override {
    if (const auto failure = host_->failure())
      throw FailureError{*failure};
  }
  /// A thread's calls come first: its group is the one that meets.
  void compare() override {
    if (last_made_.valid())
      last_made_.get();
    barrier("calls on streams");
  }

private:
  net::StreamTicket enqueue(net::StreamOrder order,
                            std::function<void()> call) {
    waiting_.push_back(std::move(call));
    ++given_;
    const bool is_beside = order == net::StreamOrder::beside;
    auto* const counted = is_beside ? options_.beside : options_.in_line;
    if (counted != nullptr)
      ++*counted;
    if (is_beside && options_.pace == StreamPace::by_thread)
      start_first();
    else if (!is_beside || options_.pace == StreamPace::early)
      join({given_});
    return {given_};
  }
  void run_first() {
    waiting_.front()();
    waiting_.pop_front();
    ++done_;
  }
  /// Makes the call that was given last after those before it.
  void start_first() {
    std::shared_future<void> made
      = std::async(std::launch::async, [before = last_made_,
                                        call = waiting_.back()] {
          if (before.valid())
            before.get();
          call();
        }).share();
    last_made_ = made;
    waiting_.back() = [made] { made.get(); };
  }

  std::shared_ptr<net::Collectives> host_;
  const Options options_;
  int launches_ = 0;
  std::deque<std::function<void()>> waiting_;
  std::uint64_t given_ = 0;
  std::uint64_t done_ = 0;
  std::shared_future<void> last_made_; ///< by a thread
};

} // namespace troupe::testing
