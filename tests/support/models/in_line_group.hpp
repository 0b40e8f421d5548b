// A group over the host whose calls are in the order of the thread's kernels,
// as those of NCCL on streams are: for backends of the CPU, whose kernels run
// when they are called.
#pragma once

#include "net/collectives/collectives.hpp"
#include "net/collectives/stream_collectives.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace troupe::testing {

class InLineGroup final : public net::Collectives {
public:
  /// Called before the nth graph of the group is launched, from 1.
  using OnLaunch = std::function<void(int launch, net::Collectives& group)>;

  explicit InLineGroup(std::shared_ptr<net::Collectives> host,
                       OnLaunch on_launch = {})
    : host_(std::move(host)),
      calls_(*host_, std::move(on_launch)) {}

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
    return &calls_;
  }
  std::optional<Failure> failure() override {
    return host_->failure();
  }
  void abort(const Failure& failure) noexcept override {
    host_->abort(failure);
  }

private:
  class Calls final : public net::StreamCollectives {
  public:
    Calls(net::Collectives& host, OnLaunch on_launch)
      : host_(host),
        on_launch_(std::move(on_launch)) {}

    net::StreamTicket all_reduce_sum(void* data, std::size_t count, DType dtype,
                                     const char* name,
                                     net::StreamOrder /*order*/) override {
      host_.all_reduce_sum(data, count, dtype, name);
      return {};
    }
    net::StreamTicket all_gather(const void* mine, void* all, std::size_t count,
                                 DType dtype, const char* name,
                                 net::StreamOrder /*order*/) override {
      host_.all_gather(mine, all, count, dtype, name);
      return {};
    }
    net::StreamTicket reduce_scatter_sum(const void* all, void* mine,
                                         std::size_t count, DType dtype,
                                         const char* name,
                                         net::StreamOrder /*order*/) override {
      host_.reduce_scatter_sum(all, mine, count, dtype, name);
      return {};
    }
    net::StreamTicket broadcast(void* data, std::size_t count, DType dtype,
                                std::uint32_t root, const char* name,
                                net::StreamOrder /*order*/) override {
      host_.broadcast(data, count, dtype, root, name);
      return {};
    }
    void join(net::StreamTicket /*ticket*/) override {}
    void launch(const char* /*name*/,
                const std::function<void()>& graph) override {
      ++launches_;
      if (on_launch_)
        on_launch_(launches_, host_);
      graph();
    }
    void check() override {
      if (const auto failure = host_.failure())
        throw FailureError{*failure};
    }
    void compare() override {}

  private:
    net::Collectives& host_;
    OnLaunch on_launch_;
    int launches_ = 0;
  };

  std::shared_ptr<net::Collectives> host_;
  Calls calls_;
};

} // namespace troupe::testing
