#include "models/parallel/run_context.hpp"

#include "config/base/error.hpp"
#include "net/collectives/channel.hpp"
#include "net/collectives/collectives.hpp"

#include <initializer_list>

namespace troupe::models {

bool Groups::first_of_context() const {
  return cp == nullptr || cp->rank() == 0;
}

void Groups::join_context(void* data, std::size_t count, DType dtype,
                          const char* name) const {
  if (cp != nullptr && count > 0)
    cp->all_reduce_sum(data, count, dtype, name);
}

void Groups::check() const {
  for (const auto& group : {tp, cp})
    if (group != nullptr)
      if (const auto failure = group->failure())
        throw FailureError(*failure);
  for (const auto& link : {previous, next})
    if (link != nullptr)
      link->check();
}

// From the first stage to the last: the link that closes the ring carries no
// streams, so the first one waits for its next stage alone.
void Groups::meet() const {
  for (const auto& group : {tp, cp, ends})
    if (group != nullptr)
      group->barrier("calls on streams");
  for (const auto& link : {previous, next})
    if (link != nullptr)
      link->compare();
}

std::uint32_t Groups::stage() const {
  return pp == nullptr ? 0 : pp->rank();
}

std::uint32_t Groups::stages() const {
  return pp == nullptr ? 1 : pp->size();
}

void RunContext::check() const {
  made_progress();
  if (stop_requested())
    throw FailureError(
      Failure{Errc::aborted, "engine",
              "stopped in step " + std::to_string(step_number(step)), ""});
}

} // namespace troupe::models
