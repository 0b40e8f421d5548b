#include "nccl_between.hpp"

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::standin {

namespace {

using fake_nccl::RankCall;
using fake_nccl::What;
using Bytes = std::vector<std::byte>;

constexpr int version = 22809;

/// Does what a call of the group does, for this member alone.
void join(const FarCall& call, int size, int rank, const Bytes& answer) {
  std::map<int, Call> calls;
  std::vector<Bytes> others(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    Bytes& unused = others[static_cast<std::size_t>(i)];
    unused.resize(i == rank ? 0 : call.to_bytes);
    calls[i] = {answer.data() + static_cast<std::size_t>(i) * call.from_bytes,
                i == rank ? call.memory.to : unused.data()};
  }
  call.body(calls);
}

/// Writes the answer where the member wants it; a sender has none.
void finish(const FarCall& call, int size, int rank, const Bytes& answer) {
  if (call.sender < 0)
    join(call, size, rank, answer);
  else if (rank == call.receiver)
    std::memcpy(call.memory.to, answer.data(), answer.size());
}

} // namespace

std::vector<Range> ranges_of(const FarCall& call) {
  std::vector<Range> all;
  if (call.from_bytes > 0)
    all.push_back({call.memory.from, call.from_bytes});
  if (call.to_bytes > 0)
    all.push_back({call.memory.to, call.to_bytes});
  return all;
}

FarMember::FarMember(const std::string& id, int size, int rank)
  : link_(new fake_nccl::RankLink(
    id, {.size = size, .rank = rank, .version = version})),
    size_(size),
    rank_(rank) {}

void FarMember::call(const FarCall& call, const Seat& seat) {
  Meeting sending;
  Meeting answered;
  sending.come({seat.arrival, nullptr});
  answered.come(seat);
  count_launch(call.name);
  const bool is_pair = call.sender >= 0;
  const RankCall sent{
    .what = is_pair ? What::pass_on : What::all_gather,
    .type = static_cast<std::int32_t>(std::hash<std::string>{}(call.name)),
    .root = is_pair ? call.sender : 0,
    .other = is_pair ? call.receiver : 0,
    .count = call.from_bytes + (is_pair ? call.to_bytes : 0),
    .bytes = call.from_bytes,
    .order = is_pair ? ++pairs_[call.name] : 0};
  // In a thread of its own: that of the link holds its lock, which a sender
  // takes while it holds the stand-in's.
  const auto answer = [=, size = size_, rank = rank_](const std::byte* result,
                                                      std::size_t bytes) {
    std::thread([=, all = Bytes(result, result + bytes)] {
      Meeting waiting = answered;
      if (result == nullptr)
        return waiting.abandon();
      waiting.start({call.name, {{call.memory.to, call.to_bytes}}, [=] {
                       finish(call, size, rank, all);
                     }});
    }).detach();
  };
  std::vector<Range> read;
  if (call.from_bytes > 0)
    read.push_back({call.memory.from, call.from_bytes});
  sending.start({call.name, read, [=, link = link_] {
                   if (link->send(sent, call.memory.from, answer)
                       != fake_nccl::ok)
                     answer(nullptr, 0);
                 }});
}

void FarMember::abort() {
  link_->abort();
}

int FarMember::state() {
  return link_->state();
}

void FarMember::wait_until_joined() {
  link_->wait_until_joined();
}

} // namespace troupe::standin
