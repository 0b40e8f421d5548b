// What a worker was last asked to do: tells what its death interrupted.
#pragma once

#include "actors/ask.hpp"

namespace troupe::actors {

/// " during run of actor_train in step 3 on device 2": asked of that worker, or
/// else of another one; empty if nothing was. `waits` are an AskTable's.
inline std::string during_work(const std::vector<AskTable::Wait>& waits,
                               WorkerId worker) {
  std::string here;
  std::string elsewhere;
  for (const auto& wait : waits)
    if (wait.worker && !wait.name.starts_with("heartbeat"))
      (wait.worker == worker ? here : elsewhere) = wait.name;
  const auto& work = here.empty() ? elsewhere : here;
  return work.empty() ? "" : " during " + work;
}

} // namespace troupe::actors
