// Makes a task's rows local: from this worker's stash, from the data set, and
// from other holders over the data plane. Shared by shards and functions.
#pragma once

#include "actors/protocol/open_replies.hpp"
#include "actors/worker_base/worker_context.hpp"

namespace troupe::actors {

struct Gathered {
  net::Rows rows; ///< every key of the order, samples ascending
  std::uint64_t wire_bytes = 0;
};

/// Starts and ends on the worker's host thread; `done` is called once, on any
/// thread, with the cause if rows are missing or do not fit together.
void gather_rows(const std::shared_ptr<WorkerContext>& context, StepId step,
                 FetchOrder order, std::function<void(Result<Gathered>)> done);

/// Returns the rows of `source`, which is a data file or this worker's stash.
net::Rows local_rows(WorkerContext& context, StepId step,
                     const RowSource& source);

/// Joins parts that hold different samples of some keys each.
net::Rows join_parts(const std::vector<net::Rows>& parts);

/// Rows that were fetched and wait for their run, by (step, task).
class RowInbox {
public:
  void put(StepId step, std::uint32_t task, net::Rows rows);
  /// Removes and returns the rows of the order; none if it reads none. Throws
  /// InvariantError if they should have been fetched and were not.
  net::Rows take(StepId step, const RunOrder& order);

private:
  std::map<std::pair<StepId, std::uint32_t>, net::Rows> rows_;
};

/// Handles `fetch_atom` for an actor whose state has `inbox` and `open`.
template <class SelfPointer>
caf::result<FetchDone>
fetch_rows(SelfPointer self, const std::shared_ptr<WorkerContext>& worker,
           const Context& context, const FetchOrder& order) {
  Reply<FetchDone> response{self, context};
  auto rows = std::make_shared<net::Rows>();
  auto callback = self->state.open.template open<SelfPointer, FetchDone>(
    self, response, [=, task = order.task](FetchDone&) {
      self->state.inbox.put(context.step, task, std::move(*rows));
    });
  gather_rows(worker, context.step, order, [=](Result<Gathered> result) {
    if (auto* failure = std::get_if<Failure>(&result))
      return callback(*failure);
    auto& gathered = std::get<Gathered>(result);
    *rows = std::move(gathered.rows);
    callback(FetchDone{gathered.wire_bytes});
  });
  return response.promise();
}

} // namespace troupe::actors
