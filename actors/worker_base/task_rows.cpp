#include "actors/worker_base/task_rows.hpp"

#include "config/trace/trace.hpp"

#include <fmt/format.h>

namespace troupe::actors {

net::Rows rename_in(const plans::Call& call, net::Rows rows) {
  for (auto& column : rows.columns)
    column.key = call.argument(column.key);
  return rows;
}

net::Rows rename_out(const plans::Call& call, net::Rows rows) {
  for (auto& column : rows.columns)
    for (const auto& key : call.writes)
      if (call.argument(key) == column.key)
        column.key = key;
  return rows;
}

RunDone stash_outputs(WorkerContext& worker, StepId step,
                      const plans::Call& call, net::Rows outputs) {
  RunDone done;
  done.holder = worker.worker;
  done.samples = outputs.samples;
  done.bytes = outputs.size_bytes();
  for (const auto& column : outputs.columns) {
    done.keys.push_back(column.key);
    if (call.argument(column.key) == "sequence_ids")
      done.tokens = column.lengths;
  }
  if (!outputs.samples.empty())
    worker.exchange.stash.put(step, std::move(outputs));
  return done;
}

void trace_rows(trace::Track track, std::string_view what, StepId step,
                const net::Rows& rows) {
  if (!trace::enabled())
    return;
  for (const auto& column : rows.columns) {
    const auto text = trace::name(fmt::format("{} {}", what, column.key));
    trace::begin(track, text, step.value, column.data.size_bytes());
    trace::end(track, text);
  }
}

} // namespace troupe::actors
