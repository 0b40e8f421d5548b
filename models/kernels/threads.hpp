// The compute threads of one device, and how loops are split over them. Each
// thread that starts loops has a team of its own. A team spins for its next
// loop for about the time between two loops of a pass, then sleeps: on a
// machine where another program takes a core, spinning members (libgomp's spin
// for milliseconds) keep the thread that they wait for from running.
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::models {

/// Sets the number of threads, once per process and first in main: libtorch
/// accepts it neither per thread nor for all threads later.
void set_compute_threads(int num_threads);
/// Returns the number of threads that a loop would use; 1 inside a loop.
int compute_threads();
/// Returns the index of the calling thread among them.
int compute_thread();

namespace detail {

using PartCall = void (*)(const void* body, std::int64_t part);

/// Runs call(body, part) for parts [0, parts), one per thread.
void run_parts(std::int64_t parts, PartCall call, const void* body);

} // namespace detail

/// Runs body(from, to) concurrently for contiguous parts of [begin, end), each
/// of at least `grain`. Rethrows an exception of any part.
template <class Body>
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const Body& body) {
  const std::int64_t count = end - begin;
  if (count <= 0)
    return;
  const std::int64_t least = std::max<std::int64_t>(grain, 1);
  const std::int64_t parts = std::min<std::int64_t>(
    count <= least ? 1 : compute_threads(), (count + least - 1) / least);
  if (parts <= 1)
    return body(begin, end);
  const std::int64_t share = (count + parts - 1) / parts;
  const auto part_of = [&](std::int64_t part) {
    const std::int64_t from = begin + part * share;
    if (from < end)
      body(from, std::min(end, from + share));
  };
  using PartOf = decltype(part_of);
  detail::run_parts(
    parts,
    [](const void* it, std::int64_t part) {
      (*static_cast<const PartOf*>(it))(part);
    },
    &part_of);
}

} // namespace troupe::models
