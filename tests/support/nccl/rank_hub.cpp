#include "rank_hub.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::fake_nccl {

namespace {

using Bytes = std::vector<std::byte>;

struct Answer {
  std::uint64_t tag = 0;
  std::int64_t status = ok;
  std::uint64_t bytes = 0;
};

bool write_all(int socket, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const auto done = ::send(socket, at, size, MSG_NOSIGNAL);
    if (done <= 0)
      return false;
    at += done;
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

bool read_all(int socket, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const auto done = ::recv(socket, at, size, 0);
    if (done <= 0)
      return false;
    at += done;
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

/// Opens a socket and gives `use` the address, which no file has.
template <class Use>
int open_socket(const std::string& id, const Use& use) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  id.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size
    = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + id.size());
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (use(made, reinterpret_cast<const sockaddr*>(&address), size) == 0)
    return made;
  ::close(made);
  return -1;
}

template <class T>
void add(Bytes& to, const Bytes& from) {
  for (std::size_t at = 0; at < to.size(); at += sizeof(T)) {
    T sum{};
    T more{};
    std::memcpy(&sum, &to[at], sizeof sum);
    std::memcpy(&more, &from[at], sizeof more);
    sum += more;
    std::memcpy(&to[at], &sum, sizeof sum);
  }
}

void add_numbers(Bytes& to, const Bytes& from, int type) {
  if (type == 2)
    add<std::int32_t>(to, from);
  else if (type == 4)
    add<std::int64_t>(to, from);
  else if (type == 8)
    add<double>(to, from);
  else
    add<float>(to, from);
}

/// A call that waits for the other ranks.
struct Round {
  struct Part {
    RankCall call;
    Bytes data;
  };
  std::map<int, Part> parts; ///< by rank

  bool agrees() const {
    const auto& first = parts.begin()->second.call;
    for (const auto& [rank, part] : parts)
      if (part.call.what != first.what || part.call.type != first.type
          || part.call.count != first.count || part.call.root != first.root)
        return false;
    return true;
  }
  Bytes sum() const {
    auto all = parts.at(0).data;
    for (const auto& [rank, part] : parts)
      if (rank > 0)
        add_numbers(all, part.data, part.call.type);
    return all;
  }
  /// Returns what this rank gets.
  Bytes result(int rank) const {
    const auto& call = parts.at(rank).call;
    switch (call.what) {
    case What::all_reduce:
      return sum();
    case What::all_gather: {
      Bytes all;
      for (const auto& [from, part] : parts)
        all.insert(all.end(), part.data.begin(), part.data.end());
      return all;
    }
    case What::reduce_scatter: {
      const auto all = sum();
      const auto size = static_cast<std::ptrdiff_t>(all.size() / parts.size());
      return {all.begin() + rank * size, all.begin() + (rank + 1) * size};
    }
    case What::broadcast:
      return parts.at(call.root).data;
    case What::pass_on:
      return rank == call.other ? parts.at(call.root).data : Bytes{};
    case What::hello:
      break;
    }
    return {};
  }
};

/// The group of an id; lives as long as a thread of its own.
class Hub : public std::enable_shared_from_this<Hub> {
public:
  explicit Hub(int listener) : listener_(listener) {}
  void accept_all() {
    for (std::size_t come = 0; come < size_or_one(); ++come) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0)
        break;
      RankCall hello;
      if (read_all(socket, &hello, sizeof hello))
        greet(socket, hello);
      else
        ::close(socket);
    }
    ::close(listener_);
  }

private:
  std::size_t size_or_one() {
    const std::lock_guard lock(mutex_);
    return size_ == 0 ? 1 : size_;
  }
  void greet(int socket, const RankCall& hello) {
    const std::lock_guard lock(mutex_);
    if (size_ == 0) {
      size_ = static_cast<std::size_t>(hello.other);
      version_ = hello.type;
    }
    const bool fits = static_cast<std::size_t>(hello.other) == size_
                      && hello.type == version_ && hello.root >= 0
                      && hello.root < hello.other
                      && !sockets_.contains(hello.root);
    if (!fits && status_ == ok)
      status_ = invalid_usage;
    // one that does not fit has a number of its own, for the answer
    const int rank = fits ? hello.root : -1 - static_cast<int>(sockets_.size());
    sockets_[rank] = socket;
    std::thread([self = shared_from_this(), socket, rank] {
      self->serve(socket, rank);
    }).detach();
    if (sockets_.size() == size_)
      answer_all(status_);
  }
  void serve(int socket, int rank) {
    RankCall call;
    while (read_all(socket, &call, sizeof call)) {
      Bytes data(call.bytes);
      if (!read_all(socket, data.data(), data.size()))
        break;
      take(rank, call, std::move(data));
    }
    const std::lock_guard lock(mutex_);
    sockets_.erase(rank);
    if (status_ == ok)
      status_ = remote_error;
    answer_all(status_);
    ::close(socket);
  }
  void take(int rank, const RankCall& call, Bytes data) {
    const std::lock_guard lock(mutex_);
    if (status_ != ok)
      return;
    const bool is_pair = call.what == What::pass_on;
    auto key = is_pair ? std::to_string(call.root) + " to "
                           + std::to_string(call.other)
                       : "all";
    key += ' '
           + std::to_string(call.order > 0 ? call.order : counts_[rank][key]++);
    auto& round = rounds_[key];
    round.parts[rank] = {call, std::move(data)};
    if (round.parts.size() < (is_pair ? 2 : size_))
      return;
    const auto whole = std::move(round);
    rounds_.erase(key);
    if (!whole.agrees()) {
      status_ = invalid_usage;
      return answer_all(status_);
    }
    for (const auto& [each, part] : whole.parts)
      answer(sockets_.at(each), part.call.tag, ok, whole.result(each));
  }
  void answer_all(int status) {
    for (const auto& [rank, socket] : sockets_)
      answer(socket, 0, status, {});
  }
  /// A rank that has gone is found by who reads from it.
  static void answer(int socket, std::uint64_t tag, int status,
                     const Bytes& result) {
    const Answer head{tag, status, result.size()};
    if (write_all(socket, &head, sizeof head))
      write_all(socket, result.data(), result.size());
  }

  const int listener_;
  std::mutex mutex_;
  std::size_t size_ = 0; ///< 0: nobody has come
  int version_ = 0;
  int status_ = ok;
  std::map<int, int> sockets_; ///< by rank
  std::map<int, std::map<std::string, std::uint64_t>> counts_;
  std::map<std::string, Round> rounds_;
};

} // namespace

std::size_t bytes_of_type(int type) {
  if (type == 0 || type == 1)
    return 1;
  return type == 4 || type == 8 ? 8 : (type == 6 || type == 9 ? 2 : 4);
}

std::string open_hub() {
  static std::atomic<unsigned> next = 0;
  const auto id = "fake nccl " + std::to_string(::getpid()) + ' '
                  + std::to_string(next++) + ' '
                  + std::to_string(std::random_device{}());
  const int listener
    = open_socket(id, [](int socket, const sockaddr* address, socklen_t size) {
        return ::bind(socket, address, size) == 0 ? ::listen(socket, 64) : -1;
      });
  if (listener < 0)
    return "";
  std::thread([hub = std::make_shared<Hub>(listener)] {
    hub->accept_all();
  }).detach();
  return id;
}

RankLink::RankLink(const std::string& id, const Place& place)
  : place_(place),
    socket_(open_socket(id, ::connect)) {
  const RankCall hello{.what = What::hello,
                       .type = place.version,
                       .root = place.rank,
                       .other = place.size};
  if (socket_ < 0 || !write_all(socket_, &hello, sizeof hello))
    state_ = remote_error;
  else
    std::thread([this] { read_answers(); }).detach();
}

int RankLink::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

int RankLink::wait_until_joined() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ != in_progress; });
  return state_;
}

void RankLink::set_state(int state) {
  const std::lock_guard lock(mutex_);
  if (state_ == ok || state_ == in_progress)
    state_ = state;
  changed_.notify_all();
}

int RankLink::send(RankCall call, const void* from, Done done) {
  const std::lock_guard order(sending_);
  {
    const std::lock_guard lock(mutex_);
    if (state_ != ok)
      return state_;
    call.tag = next_tag_++;
    waiting_[call.tag] = std::move(done);
  }
  if (!write_all(socket_, &call, sizeof call)
      || !write_all(socket_, from, call.bytes))
    set_state(remote_error);
  return ok;
}

void RankLink::read_answers() {
  Answer head;
  while (read_all(socket_, &head, sizeof head)) {
    Bytes result(head.bytes);
    if (!read_all(socket_, result.data(), result.size()))
      break;
    if (head.tag == 0) {
      set_state(static_cast<int>(head.status));
      continue;
    }
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(head.tag);
    if (found == waiting_.end())
      continue;
    found->second(result.data(), result.size());
    waiting_.erase(found);
  }
  set_state(remote_error);
}

void RankLink::abort() {
  const std::lock_guard lock(mutex_);
  state_ = remote_error;
  for (const auto& [tag, done] : waiting_)
    done(nullptr, 0);
  waiting_.clear();
  changed_.notify_all();
  if (socket_ >= 0)
    ::shutdown(socket_, SHUT_RDWR);
}

} // namespace troupe::fake_nccl
