#include "actors/user/device_losses.hpp"

#include "actors/worker_base/worker_context.hpp"
#include "models/losses/python_loss.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

const models::Losses* DeviceLosses::find(const WorkerContext& worker,
                                         Rank device, const std::string& role,
                                         const std::atomic<bool>& stop) {
  const auto& calls = worker.run.workflow.calls;
  const auto call = std::ranges::find_if(calls, [&](const plans::Call& one) {
    return one.kind == plans::CallKind::train && one.role == role
           && is_python_function(one.fn);
  });
  if (call == calls.end())
    return nullptr;
  const std::lock_guard lock{mutex_};
  auto& made = made_[{device, role}];
  if (made)
    return made.get();
  auto loss = models::losses().find(call->fn);
  models::bind_python(
    loss, {.who = fmt::format("{}, loss of {} on device {}", worker.who,
                              call->name, device.value),
           .process = fmt::format("{}_of_device_{}", call->name, device.value),
           .log_folder = worker.run.folder / "logs",
           .deadline = std::chrono::seconds(
             worker.run.settings.cluster.own_actor_timeout_s),
           .stop = &stop});
  made = std::make_unique<models::Losses>(models::losses());
  made->set(std::move(loss));
  return made.get();
}

} // namespace troupe::actors
