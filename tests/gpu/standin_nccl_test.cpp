// The stand-in for NCCL between processes: this program and a second one of it,
// which runs a test that is disabled otherwise. Runs under standin.sh.
#include <gtest/gtest.h>

#include "cuda/standin/standin.hpp"
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

constexpr int fp32 = 7;
constexpr int sum = 0;
constexpr const char* id_variable = "TROUPE_TEST_NCCL_ID";

struct Id {
  char bytes[128];
};

template <class Function>
Function nccl(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

/// A member with a GPU of its own, whose two numbers a test can read.
class Member {
public:
  Member(const Id& id, int rank) {
    cudaSetDevice(rank);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMallocManaged(reinterpret_cast<void**>(&numbers), 2 * sizeof(float));
    nccl<int (*)(void**, int, Id, int)>("ncclCommInitRank")(&communicator, 2,
                                                            id, rank);
  }
  void add() {
    nccl<int (*)(const void*, void*, std::size_t, int, int, void*,
                 cudaStream_t)>("ncclAllReduce")(numbers, numbers, 1, fp32, sum,
                                                 communicator, stream);
    cudaStreamSynchronize(stream);
  }
  void send(int peer) {
    nccl<int (*)(const void*, std::size_t, int, int, void*, cudaStream_t)>(
      "ncclSend")(numbers, 1, fp32, peer, communicator, stream);
    cudaStreamSynchronize(stream);
  }
  void receive(int peer) {
    nccl<int (*)(void*, std::size_t, int, int, void*, cudaStream_t)>(
      "ncclRecv")(numbers + 1, 1, fp32, peer, communicator, stream);
    cudaStreamSynchronize(stream);
  }
  int state() {
    int error = 0;
    nccl<int (*)(void*, int*)>("ncclCommGetAsyncError")(communicator, &error);
    return error;
  }

  cudaStream_t stream = nullptr;
  float* numbers = nullptr;
  void* communicator = nullptr;
};

/// Starts this program with one test, which finds the id.
pid_t start_peer(const Id& id, const char* test) {
  const pid_t child = ::fork();
  if (child != 0)
    return child;
  ::setenv(id_variable, id.bytes, 1);
  const std::string filter = std::string("--gtest_filter=") + test;
  ::execl("/proc/self/exe", "peer", filter.c_str(),
          "--gtest_also_run_disabled_tests", nullptr);
  ::_exit(127);
}

Id id_of_parent() {
  Id id{};
  std::string(std::getenv(id_variable)).copy(id.bytes, sizeof id.bytes);
  return id;
}

TEST(NcclBetweenProcesses, SumsAndMessagesReachTheOtherProcess) {
  Id id{};
  nccl<int (*)(Id*)>("ncclGetUniqueId")(&id);
  const pid_t peer = start_peer(id, "DISABLED_Peer.AddsAndSends");
  Member member(id, 0);
  member.numbers[0] = 1;
  member.add();
  EXPECT_EQ(member.numbers[0], 11);
  member.receive(1);
  EXPECT_EQ(member.numbers[1], 11);
  int status = 0;
  ::waitpid(peer, &status, 0);
  EXPECT_EQ(status, 0);
  cudaSetDevice(0);
}
TEST(DISABLED_Peer, AddsAndSends) {
  Member member(id_of_parent(), 1);
  member.numbers[0] = 10;
  member.add();
  EXPECT_EQ(member.numbers[0], 11);
  member.send(0);
}

TEST(NcclBetweenProcesses, AProcessThatEndsIsAnErrorOfTheGroup) {
  Id id{};
  nccl<int (*)(Id*)>("ncclGetUniqueId")(&id);
  const pid_t peer = start_peer(id, "DISABLED_Peer.JoinsAndEnds");
  Member member(id, 0);
  ::waitpid(peer, nullptr, 0);
  constexpr int remote_error = 6;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (member.state() != remote_error
         && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_EQ(member.state(), remote_error);
  cudaSetDevice(0);
}
TEST(DISABLED_Peer, JoinsAndEnds) {
  const Member member(id_of_parent(), 1);
}

} // namespace
