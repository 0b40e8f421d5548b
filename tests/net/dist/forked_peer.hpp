// A second process of a test: it is forked while the test has no thread yet,
// exchanges numbers over a socket pair and dies with the test.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <type_traits>

namespace troupe::net::testing {

/// Exchanges numbers between the two processes; a lost peer ends the process.
class Talk {
public:
  explicit Talk(int socket) : socket_(socket) {}
  template <class T>
  void say(const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (::send(socket_, &value, sizeof(T), MSG_NOSIGNAL) != sizeof(T))
      std::abort();
  }
  template <class T>
  T hear() const {
    T value{};
    if (::recv(socket_, &value, sizeof(T), MSG_WAITALL) != sizeof(T))
      std::abort();
    return value;
  }
  int socket() const {
    return socket_;
  }

private:
  int socket_;
};

class ForkedPeer {
public:
  /// Runs `body` in the child, which then exits with 0 (1 if it throws).
  explicit ForkedPeer(const std::function<void(const Talk&)>& body) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      std::abort();
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      run(body, ends[1]);
    }
    ::close(ends[1]);
    socket_ = ends[0];
  }
  ~ForkedPeer() {
    signal(SIGKILL);
    wait();
    ::close(socket_);
  }
  ForkedPeer(const ForkedPeer&) = delete;
  ForkedPeer& operator=(const ForkedPeer&) = delete;

  Talk talk() const {
    return Talk(socket_);
  }
  void signal(int number) const {
    if (pid_ > 0)
      ::kill(pid_, number);
  }
  /// Returns the exit code, or -1 after a signal.
  int wait() {
    if (pid_ <= 0)
      return code_;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code_;
  }

private:
  [[noreturn]] static void run(const std::function<void(const Talk&)>& body,
                               int socket) {
    try {
      body(Talk(socket));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "peer: %s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }

  pid_t pid_ = 0;
  int socket_ = -1;
  int code_ = 0;
};

} // namespace troupe::net::testing
