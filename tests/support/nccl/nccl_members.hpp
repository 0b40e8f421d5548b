// Groups over the stand-in for NCCL, whose members are threads of the test. No
// GPU is needed or used.
#pragma once

#include "net/collectives/host_collectives.hpp"
#include "net/collectives/nccl_collectives.hpp"

#include <gtest/gtest.h>

#include "tests/support/nccl/fake_nccl.hpp"
#include "tests/support/net/group_threads.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Memory that counts as a GPU's, until the test ends.
class CountedMemory {
public:
  static CountedMemory& instance() {
    static CountedMemory only;
    return only;
  }
  void add(const std::byte* data, std::size_t bytes) {
    FakeNccl::instance().count_as_gpu(data, bytes);
    const std::lock_guard lock(mutex_);
    known_.push_back(data);
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    for (const std::byte* data : std::exchange(known_, {}))
      FakeNccl::instance().forget(data);
  }

private:
  std::mutex mutex_;
  std::vector<const std::byte*> known_;
};

/// Makes numbers count as a GPU's memory.
template <class T>
std::vector<T>& on_gpu(std::vector<T>& values) {
  CountedMemory::instance().add(
    reinterpret_cast<const std::byte*>(values.data()),
    values.size() * sizeof(T));
  return values;
}

class NcclMembers : public ::testing::Test {
protected:
  ~NcclMembers() override {
    CountedMemory::instance().forget();
  }
  net::GroupSpec spec(std::uint32_t rank) const {
    net::GroupSpec made;
    made.name = "nccl";
    made.index = rank;
    made.members.resize(members_);
    made.progress_deadline = deadline_;
    return made;
  }

  std::shared_ptr<net::Collectives> member(std::uint32_t rank) {
    return net::make_nccl_collectives(
      {.group = "the test's group",
       .host = net::make_host_collectives(spec(rank), registry_),
       .device = 0,
       .progress_deadline = deadline_,
       .offers = offers(),
       .thread_stream = [this, rank] { return streams_[rank]; }},
      library_of(rank));
  }
  void make_streams() {
    streams_.resize(members_);
    for (net::CudaStream& stream : streams_)
      FakeNccl::library().cuda.make_stream(&stream, 1);
  }
  std::vector<std::optional<Failure>>
  run(const std::function<void(net::Collectives&)>& body) {
    make_streams();
    return run_group(
      members_, [this](std::uint32_t rank) { return member(rank); }, body,
      leave_together_);
  }
  void expect_success(const std::function<void(net::Collectives&)>& body) {
    for (const auto& failure : run(body))
      EXPECT_FALSE(failure) << to_string(*failure);
  }

  const net::NcclLibrary& library_of(std::uint32_t rank) const {
    const auto found = libraries_.find(rank);
    return found == libraries_.end() ? FakeNccl::library() : *found->second;
  }
  /// Returns what the members have.
  std::vector<net::NcclOffer> offers() const {
    std::vector<net::NcclOffer> all;
    for (std::uint32_t rank = 0; rank < members_; ++rank)
      all.push_back(
        {gpu_of(shares_a_gpu_ ? 0 : rank), library_of(rank).why_not.empty()});
    return all;
  }
  /// Sums memory of a GPU, and expects the sum and no error of CUDA.
  static void expect_sum(net::Collectives& group) {
    std::vector<float> sum{1};
    group.all_reduce_sum(on_gpu(sum).data(), 1, DType::f32, "sum");
    EXPECT_EQ(sum[0], static_cast<float>(group.size()));
    EXPECT_EQ(FakeNccl::library().cuda.clear_error(), 0)
      << "the next kernel launch fails with it";
  }

  /// Waits until the stream of a member's kernels has done all that is in it.
  void wait_for_kernels(const net::Collectives& group) const {
    const net::CudaStreams& cuda = FakeNccl::library().cuda;
    while (cuda.query_stream(streams_[group.rank()]) != 0) {
      cuda.clear_error();
      std::this_thread::yield();
    }
  }

  std::uint32_t members_ = 3;
  std::vector<net::CudaStream> streams_; ///< of the kernels of each member
  /// By rank: of members that do not have the stand-in itself.
  std::map<std::uint32_t, const net::NcclLibrary*> libraries_;
  bool shares_a_gpu_ = false;
  std::chrono::milliseconds deadline_ = std::chrono::seconds(20);
  bool leave_together_ = true;
  net::GroupRegistry registry_;
};

} // namespace troupe::testing
