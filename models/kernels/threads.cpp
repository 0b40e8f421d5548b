#include "models/kernels/threads.hpp"

#include <ATen/Parallel.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::models {

namespace {

constexpr std::chrono::microseconds team_patience{100};

thread_local bool in_loop = false;
thread_local int loop_part = 0;

/// Waits until `done()`, spinning at first, then in `rest()`, which may return
/// early.
template <class Done, class Rest>
void team_wait(const Done& done, const Rest& rest) {
  constexpr int looks = 16; // polls between two reads of the clock
  const auto end = std::chrono::steady_clock::now() + team_patience;
  do {
    for (int i = 0; i < looks; ++i) {
      if (done())
        return;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  while (!done())
    rest();
}

/// The worker threads of the thread that owns it.
class Team {
public:
  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    stopped_ = true;
    begin_round();
    for (std::thread& thread : threads_)
      thread.join();
  }

  void run(std::int64_t parts, detail::PartCall call, const void* body) {
    while (static_cast<std::int64_t>(threads_.size()) + 1 < parts)
      threads_.emplace_back(&Team::serve, this,
                            static_cast<int>(threads_.size()) + 1,
                            round_.load());
    parts_ = parts;
    call_ = call;
    body_ = body;
    failed_ = false;
    left_ = static_cast<std::uint32_t>(threads_.size());
    begin_round();
    work(0);
    team_wait([&] { return left_.load() == 0; },
              [&] {
                if (const std::uint32_t left = left_.load(); left != 0)
                  left_.wait(left);
              });
    if (failed_)
      std::rethrow_exception(std::exchange(error_, nullptr));
  }

private:
  void begin_round() {
    ++round_;
    round_.notify_all();
  }

  void work(int part) {
    if (part >= parts_)
      return;
    in_loop = true;
    loop_part = part;
    try {
      call_(body_, part);
    } catch (...) {
      if (!failed_.exchange(true))
        error_ = std::current_exception();
    }
    in_loop = false;
    loop_part = 0;
  }

  void serve(int part, std::uint32_t seen) {
    while (true) {
      team_wait([&] { return round_.load() != seen; },
                [&] { round_.wait(seen); });
      seen = round_.load();
      if (stopped_)
        return;
      work(part);
      if (--left_ == 0)
        left_.notify_one();
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<std::uint32_t> round_ = 0;
  std::atomic<std::uint32_t> left_ = 0; ///< threads that have not finished the
                                        ///< round
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> failed_ = false;
  std::exception_ptr error_;
  // State of the round, written before it begins.
  std::int64_t parts_ = 0;
  detail::PartCall call_ = nullptr;
  const void* body_ = nullptr;
};

} // namespace

void set_compute_threads(int num_threads) {
  at::set_num_threads(num_threads);
}

int compute_threads() {
  return in_loop ? 1 : at::get_num_threads();
}

int compute_thread() {
  return loop_part;
}

void detail::run_parts(std::int64_t parts, PartCall call, const void* body) {
  static thread_local Team team;
  team.run(parts, call, body);
}

} // namespace troupe::models
