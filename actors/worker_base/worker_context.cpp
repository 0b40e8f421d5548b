#include "actors/worker_base/worker_context.hpp"

#include "actors/worker_base/sample_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace troupe::actors {

void LocalWeights::publish(std::uint64_t id, const net::BlockBytes& plane) {
  const std::lock_guard lock{mutex_};
  planes_[id] = plane;
}

net::BlockBytes LocalWeights::find(std::uint64_t id) const {
  const std::lock_guard lock{mutex_};
  const auto found = planes_.find(id);
  return found == planes_.end() ? net::BlockBytes{} : found->second;
}

WorkerContext::WorkerContext() = default;

WorkerContext::~WorkerContext() {
  rewards.reset(); // its thread uses the other members
}

std::shared_ptr<WorkerContext>
make_worker_context(const JoinReply& join_reply) {
  auto context = std::make_shared<WorkerContext>();
  context->worker = join_reply.worker;
  context->incarnation = join_reply.incarnation;
  context->who
    = fmt::format("worker {} (pid {})", join_reply.worker.value, getpid());
  context->run = describe_run(join_reply);
  if (!context->run.keeper.empty())
    context->snapshots = std::make_unique<SnapshotMemory>(context->run.keeper);
  if (context->run.workflow.find_call(record_fn) != nullptr
      && context->run.files->is_shared())
    context->run.files->append(context->run.folder / samples_file, "");
  return context;
}

} // namespace troupe::actors
