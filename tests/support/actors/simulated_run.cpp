#include "tests/support/actors/simulated_run.hpp"

#include "config/base/text_hash.hpp"
#include "plans/weights/residency.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

RunStart SimulatedRun::begin(Incarnation attempt) {
  weights.clear();
  rows_.clear();
  busy_.clear();
  copied_.reset();
  RunStart start{.incarnation = attempt};
  if (disk) {
    start.first_step = disk->next_step;
    start.in_flight = disk->in_flight;
    start.carried = disk->carried;
    rows_ = disk->rows;
  } else {
    for (const auto& value : dataflow_.workflow.carried)
      start.carried[value.name] = value.initial;
  }
  for (const auto& replica : dataflow_.replicas.all) {
    weights[replica.id] = loaded(replica, start.first_step);
    if (!plans::is_dropped(dataflow_.workflow, dataflow_.plan, replica))
      start.versions[replica.id] = weights[replica.id].version;
  }
  return start;
}

std::vector<SavedReplica> SimulatedRun::saved_replicas() const {
  std::vector<SavedReplica> saved;
  for (const auto& replica : dataflow_.replicas.all) {
    const auto lag = lag_of(replica);
    if (dataflow_.workflow.role(replica.role).changes()
        && (replica.home || lag > 0))
      saved.push_back({replica.id, lag});
  }
  return saved;
}

void SimulatedRun::begin_call(StepId step, const CallTask& task) {
  const auto& call = call_of(task);
  if (call.role.empty())
    return;
  const auto replica = dataflow_.replicas.of_call(call.name);
  expect(weights[replica].version == task.version,
         call.name + " of step " + to_string(step) + " finds version "
           + to_string(weights[replica].version) + ", not "
           + to_string(task.version));
  ++busy_[replica];
}

CallDone SimulatedRun::end_call(StepId step, const CallTask& task) {
  const auto& call = call_of(task);
  auto bits = text_hash(call.name) + step.value;
  for (const auto& key : call.reads)
    bits = mixed(bits, read(step, key, task));
  if (!call.role.empty()) {
    const auto replica = dataflow_.replicas.of_call(call.name);
    bits = mixed(bits, weights[replica].bits);
    --busy_[replica];
    if (call.kind == plans::CallKind::train)
      train(replica, call, step, bits);
  }
  RunDone part;
  for (std::uint32_t i = 0; i < task.count; ++i) {
    part.samples.emplace_back(task.first.value + i);
    part.tokens.push_back(8);
  }
  if (call.kind != plans::CallKind::generate)
    part.tokens.clear();
  part.keys = call.writes;
  for (const auto& key : call.writes)
    for (const auto sample : part.samples)
      rows_[{step, key}][sample.value] = mixed(bits, sample.value);
  return {.parts = {part}};
}

void SimulatedRun::begin_move(ReplicaId source, const MoveTask& task) {
  expect(weights[source].version == task.version,
         "a move finds version " + to_string(weights[source].version) + ", not "
           + to_string(task.version));
  ++busy_[source];
}

void SimulatedRun::end_move(ReplicaId source, ReplicaId target,
                            const MoveTask& task) {
  --busy_[source];
  expect(busy_[target] == 0, "a move overwrites weights that are in use");
  expect(weights[source].version == task.version,
         "weights changed while they were moved");
  weights[target] = weights[source];
}

void SimulatedRun::begin_copy(const SaveTask& task) {
  for (std::size_t i = 0; i < task.replicas.size(); ++i) {
    expect(weights[task.replicas[i]].version == task.versions[i],
           "a checkpoint finds version "
             + to_string(weights[task.replicas[i]].version) + ", not "
             + to_string(task.versions[i]));
    ++busy_[task.replicas[i]];
  }
}

void SimulatedRun::end_copy(const SaveTask& task) {
  copied_.emplace();
  copied_->next_step = task.next_step;
  copied_->in_flight = task.in_flight;
  for (const auto& carried : task.carried)
    copied_->carried[carried.name] = carried.value.number();
  for (const auto replica : task.replicas) {
    copied_->weights[replica] = weights[replica];
    --busy_[replica];
  }
  for (const auto& call : task.in_flight)
    for (const auto& part : call.done.parts)
      copy_rows(call.step, part);
}

void SimulatedRun::copy_rows(StepId step, const RunDone& part) {
  for (const auto& key : part.keys)
    for (const auto sample : part.samples)
      copied_->rows[{step, key}][sample.value]
        = rows_.at({step, key}).at(sample.value);
}

void SimulatedRun::end_write() {
  disk = std::exchange(copied_, std::nullopt);
}

std::uint64_t SimulatedRun::mixed(std::uint64_t bits, std::uint64_t more) {
  bits = (bits ^ more) * 0x9E3779B97F4A7C15;
  return bits ^ bits >> 31;
}

void SimulatedRun::expect(bool holds, const std::string& otherwise) {
  if (!holds)
    errors.push_back(otherwise);
}

const plans::Call& SimulatedRun::call_of(const CallTask& task) const {
  return dataflow_.workflow.call(dataflow_.graph.tasks.at(task.task).call);
}

std::uint32_t SimulatedRun::lag_of(const plans::Replica& replica) const {
  const bool lags
    = !replica.home && dataflow_.workflow.role(replica.role).trained
      && std::ranges::any_of(replica.calls, [&](const auto& call) {
           return dataflow_.plan.lag_of(call) > 0;
         });
  return lags ? 1 : 0;
}

SimulatedWeights SimulatedRun::loaded(const plans::Replica& replica,
                                      StepId step) {
  if (!disk || !dataflow_.workflow.role(replica.role).changes())
    return {Version{0}, text_hash(replica.role)};
  const auto version = plans::version_for(dataflow_.workflow.role(replica.role),
                                          step, lag_of(replica));
  const auto home = dataflow_.replicas.home(replica.role);
  const auto own = disk->weights.find(replica.id);
  auto found
    = own == disk->weights.end() ? disk->weights.at(home) : own->second;
  expect(found.version == version, "a checkpoint has another version");
  return found;
}

std::uint64_t SimulatedRun::read(StepId step, const std::string& key,
                                 const CallTask& task) {
  auto bits = text_hash(key) + step.value;
  if (dataflow_.workflow.writer(key) == nullptr)
    return bits; // the data set
  const auto& samples = rows_[{step, key}];
  for (auto i = task.first.value; i < task.first.value + task.count; ++i) {
    const auto found = samples.find(i);
    expect(found != samples.end(), "no rows of " + key + " of step "
                                     + to_string(step) + ", sample "
                                     + std::to_string(i));
    if (found != samples.end())
      bits = mixed(bits, found->second);
  }
  return bits;
}

void SimulatedRun::train(ReplicaId replica, const plans::Call& call,
                         StepId step, std::uint64_t bits) {
  expect(busy_[replica] == 0, call.name + " trains weights that are in use");
  auto& own = weights[replica];
  expect(own.version == Version{step.value},
         call.name + " trains step " + to_string(step) + " on version "
           + to_string(own.version));
  own = {Version{step.value + 1}, bits};
}

} // namespace troupe::actors
