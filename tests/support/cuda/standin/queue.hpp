// The work of all streams of a process: a graph of pieces that wait for each
// other. Nothing runs by itself. Who waits for a piece runs pieces in a random
// order that respects what each of them waits for, so a wait that is missing
// changes what is computed under some seeds.
#pragma once

#include "standin.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace troupe::standin {

/// A piece of work and who waits for it.
struct Node {
  Work work;
  std::size_t missing = 0; ///< pieces and holds that it still waits for
  bool is_done = false;
  std::vector<std::shared_ptr<Node>> next;
};
using NodePtr = std::shared_ptr<Node>;

/// One lock for everything that the stand-in knows.
std::recursive_mutex& mutex();
using Lock = std::unique_lock<std::recursive_mutex>;

class Queue {
public:
  /// Adds work that waits for these pieces, and for as many calls of `release`
  /// as it has holds.
  NodePtr add(Work work, const std::vector<NodePtr>& after,
              std::size_t holds = 0);
  void release(const NodePtr& node);

  /// Runs pieces until this one is done; waits for other threads if it is held.
  void run_until(const NodePtr& node);
  /// Runs pieces until all are done that were added so far and are not held.
  void run_ready();
  /// Runs at most `count` pieces: time passes.
  void run_some(std::size_t count);

  std::size_t waiting() const {
    return waiting_;
  }
  /// Draws orders from this seed.
  void seed(std::uint64_t seed);

private:
  void run_one();
  void finish(const NodePtr& node);

  std::vector<NodePtr> ready_;
  std::size_t waiting_ = 0; ///< added and not done
  std::mt19937_64 random_;
  std::condition_variable_any changed_;
};

Queue& queue();

} // namespace troupe::standin
