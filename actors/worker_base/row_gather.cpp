#include "actors/worker_base/row_gather.hpp"

#include "models/data/sample_rows.hpp"

#include <atomic>
#include <set>

namespace troupe::actors {

namespace {

/// The remote parts of one gather; the last one to arrive finishes it. It does
/// not keep the worker: the data plane, which calls it, is part of the worker.
struct Gathering {
  std::weak_ptr<WorkerContext> worker;
  std::string who;
  std::mutex mutex;
  std::vector<net::Rows> parts;
  std::size_t missing = 0;
  std::uint64_t wire_bytes = 0;
  bool ended = false;
  std::function<void(Result<Gathered>)> done;
};

/// Joins the parts, which copies rows and throws if they do not fit together.
void finish_gathering(Gathering& gathering) {
  gathering.done(result_of<Gathered>(gathering.who, [&] {
    return Gathered{join_parts(gathering.parts), gathering.wire_bytes};
  }));
}

void finish_on_host(const std::shared_ptr<Gathering>& gathering) {
  auto worker = gathering->worker.lock();
  if (!worker) // nobody waits for the rows
    return;
  auto& host = *worker->threads.host;
  // the job may hold the last reference: the worker then ends on that thread,
  // not on the data plane's
  host.post(
    [gathering, worker = std::move(worker)] { finish_gathering(*gathering); });
}

/// Runs on the I/O thread, which serves all peers: it must not throw or
/// compute.
void part_arrived(const std::shared_ptr<Gathering>& gathering,
                  net::RowsResult result) {
  const std::lock_guard lock{gathering->mutex};
  if (gathering->ended)
    return;
  if (auto* failure = std::get_if<Failure>(&result)) {
    gathering->ended = true;
    return gathering->done(*failure);
  }
  auto& rows = std::get<net::Rows>(result);
  gathering->wire_bytes += rows.size_bytes();
  gathering->parts.push_back(std::move(rows));
  if (--gathering->missing > 0)
    return;
  gathering->ended = true;
  finish_on_host(gathering);
}

void gather_on_host(const std::shared_ptr<WorkerContext>& context, StepId step,
                    const FetchOrder& order,
                    std::function<void(Result<Gathered>)> done) {
  auto gathering = std::make_shared<Gathering>();
  gathering->worker = context;
  gathering->who = context->who;
  gathering->done = std::move(done);
  std::vector<const RowSource*> remote;
  for (const auto& source : order.sources)
    if (is_data_file(source.holder) || source.holder == context->worker.value)
      gathering->parts.push_back(local_rows(*context, step, source));
    else
      remote.push_back(&source);
  gathering->missing = remote.size();
  if (remote.empty())
    return finish_gathering(*gathering);
  for (const auto* source : remote)
    context->exchange.data_plane->pull_rows(
      WorkerId{source->holder}, step, source->keys, source->samples,
      [gathering](net::RowsResult result) {
        part_arrived(gathering, std::move(result));
      });
}

} // namespace

void gather_rows(const std::shared_ptr<WorkerContext>& context, StepId step,
                 FetchOrder order, std::function<void(Result<Gathered>)> done) {
  context->threads.host->post([=, order = std::move(order)] {
    try {
      gather_on_host(context, step, order, done);
    } catch (const std::exception& error) {
      done(to_failure(error, context->who));
    }
  });
}

net::Rows local_rows(WorkerContext& context, StepId step,
                     const RowSource& source) {
  if (is_data_file(source.holder)) {
    const auto& data = source.holder == dataset_holder
                         ? context.data.dataset()
                         : context.data.evaluation();
    net::Rows rows = data.rows(source.rows, SampleId{0});
    for (auto& column : models::text_columns(data, source.rows, source.keys))
      rows.add(std::move(column));
    rows.samples = source.samples;
    return net::select_keys(rows, source.keys);
  }
  return context.exchange.stash.get(step, source.keys, source.samples);
}

net::Rows join_parts(const std::vector<net::Rows>& parts) {
  std::vector<std::string> keys;
  std::map<std::string, std::vector<net::Rows>> by_key;
  for (const auto& part : parts)
    for (const auto& column : part.columns) {
      if (!by_key.contains(column.key))
        keys.push_back(column.key);
      const std::string only[] = {column.key};
      by_key[column.key].push_back(net::select_keys(part, only));
    }
  std::vector<net::Rows> columns;
  for (const auto& key : keys)
    columns.push_back(net::concat(by_key[key]));
  return columns.empty() ? net::Rows{} : net::merge(columns);
}

void RowInbox::put(StepId step, std::uint32_t task, net::Rows rows) {
  rows_[{step, task}] = std::move(rows);
}

net::Rows RowInbox::take(StepId step, const RunOrder& order) {
  if (!order.has_rows)
    return {};
  const auto found = rows_.find({step, order.task});
  TROUPE_CHECK(found != rows_.end(), "run before fetch");
  net::Rows rows = std::move(found->second);
  rows_.erase(found);
  return rows;
}

} // namespace troupe::actors
