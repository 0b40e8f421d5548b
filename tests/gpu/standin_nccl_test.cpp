// The stand-in for NCCL in graphs, and between processes: this program and a
// second one of it, which runs a test that is disabled otherwise. Runs under
// standin.sh.
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
  Member(const Id& id, int rank) : device(rank) {
    cudaSetDevice(rank);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMallocManaged(reinterpret_cast<void**>(&numbers), 2 * sizeof(float));
    nccl<int (*)(void**, int, Id, int)>("ncclCommInitRank")(&communicator, 2,
                                                            id, rank);
  }
  void begin_sum() {
    EXPECT_EQ((nccl<int (*)(const void*, void*, std::size_t, int, int, void*,
                            cudaStream_t)>("ncclAllReduce")(
                numbers, numbers, 1, fp32, sum, communicator, stream)),
              0);
  }
  void add() {
    begin_sum();
    cudaStreamSynchronize(stream);
  }
  /// Captures a sum of the first number.
  cudaGraphExec_t captured_sum() {
    cudaSetDevice(device);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    begin_sum();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphExec_t made = nullptr;
    cudaGraphInstantiateWithFlags(&made, graph, 0);
    cudaGraphDestroy(graph);
    return made;
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

  int device;
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

TEST(NcclInGraphs, ACapturedSumMeetsTheOthersAtEachLaunch) {
  Id id{};
  nccl<int (*)(Id*)>("ncclGetUniqueId")(&id);
  Member first(id, 0);
  Member second(id, 1);
  first.numbers[0] = 1;
  second.numbers[0] = 10;
  const cudaGraphExec_t of_first = first.captured_sum();
  const cudaGraphExec_t of_second = second.captured_sum();
  for (const float sum : {11.0F, 22.0F, 44.0F}) {
    EXPECT_EQ(cudaGraphLaunch(of_first, first.stream), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(of_second, second.stream), cudaSuccess);
    cudaStreamSynchronize(first.stream);
    cudaStreamSynchronize(second.stream);
    EXPECT_EQ(first.numbers[0], sum);
    EXPECT_EQ(second.numbers[0], sum);
  }
  cudaSetDevice(0);
}

TEST(NcclInGraphs, ACapturedSumDoesNotMeetOneThatIsNot) {
  Id id{};
  nccl<int (*)(Id*)>("ncclGetUniqueId")(&id);
  Member first(id, 0);
  Member second(id, 1);
  EXPECT_EQ(cudaGraphLaunch(first.captured_sum(), first.stream), cudaSuccess);
  second.begin_sum();
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(cudaStreamQuery(first.stream), cudaErrorNotReady);
  cudaGetLastError();
  nccl<int (*)(void*)>("ncclCommAbort")(first.communicator);
  EXPECT_EQ(cudaStreamSynchronize(first.stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second.stream), cudaSuccess);
  cudaSetDevice(0);
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

TEST(NcclBetweenProcesses, CapturedSumsMeetAtEachLaunch) {
  Id id{};
  nccl<int (*)(Id*)>("ncclGetUniqueId")(&id);
  const pid_t peer = start_peer(id, "DISABLED_Peer.AddsInAGraph");
  Member member(id, 0);
  member.numbers[0] = 1;
  const cudaGraphExec_t graph = member.captured_sum();
  for (const float sum : {11.0F, 22.0F}) {
    EXPECT_EQ(cudaGraphLaunch(graph, member.stream), cudaSuccess);
    cudaStreamSynchronize(member.stream);
    EXPECT_EQ(member.numbers[0], sum);
  }
  int status = 0;
  ::waitpid(peer, &status, 0);
  EXPECT_EQ(status, 0);
  cudaSetDevice(0);
}
TEST(DISABLED_Peer, AddsInAGraph) {
  Member member(id_of_parent(), 1);
  member.numbers[0] = 10;
  const cudaGraphExec_t graph = member.captured_sum();
  for (const float sum : {11.0F, 22.0F}) {
    EXPECT_EQ(cudaGraphLaunch(graph, member.stream), cudaSuccess);
    cudaStreamSynchronize(member.stream);
    EXPECT_EQ(member.numbers[0], sum);
  }
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
