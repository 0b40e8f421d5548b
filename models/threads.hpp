// The threads that one device computes with, and how a loop is dealt to them.
// Each thread that starts loops has a team of its own. A team waits for its
// next loop for about as long as lies between two of a pass, then sleeps: on a
// machine where another program takes a core, members that wait (libgomp's do,
// for milliseconds) keep the one from running that they wait for.
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::models {

/// One number a process, set first in main: libtorch takes it neither per
/// thread nor for all (TOOLCHAIN 6 e).
void set_compute_threads(int num_threads);
/// How many a loop would be dealt to; 1 inside of one.
int compute_threads();
/// Which of them this is.
int compute_thread();

namespace detail {

using PartCall = void (*)(const void* body, std::int64_t part);

/// call(body, part) for parts [0, parts), one a thread.
void run_parts(std::int64_t parts, PartCall call, const void* body);

} // namespace detail

/// body(from, to) for contiguous parts of [begin, end), of `grain` and more
/// each, at once. Throws what one of them throws.
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
