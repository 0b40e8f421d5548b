#include "actors/user/sample_dispatcher.hpp"

#include "troupe/waits.hpp"
#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

using DispatcherSelf = Self<SampleDispatcher, DispatcherState>;
using Clock = AwakeClock;

Failure sample_failure(const AwaySample& away, const std::string& what,
                       Errc code = Errc::bad_input) {
  return {.code = code,
          .who = away.who,
          .what = fmt::format("sample {}: {}", away.sample, what),
          .cause = ""};
}

std::uint64_t send_arrow(DispatcherSelf self, Sample& sample) {
  if (!trace::enabled())
    return 0;
  const auto step = sample.arrow().step;
  sample.set_arrow({trace::next_flow(), step});
  trace::send(self->track(), trace::name("run"), sample.arrow().flow, step,
              message_bytes(self->system(), sample));
  return sample.arrow().flow;
}

void receive_arrow(DispatcherSelf self, std::uint64_t flow,
                   const Sample& sample) {
  if (flow != 0)
    trace::receive(self->track(), trace::name("run"), reply_flow(flow),
                   sample.arrow().step);
}

/// Marks the sample as no longer away; called exactly once for each.
void came_back(DispatcherSelf self, std::uint64_t id, CameBack result) {
  auto found = self->state.away.extract(id);
  if (found.empty())
    return;
  self->state.heard = Clock::now();
  self->state.setup.on_progress();
  found.mapped().came_back(std::move(result));
}

void fail_one(DispatcherSelf self, std::uint64_t id, const std::string& what,
              Errc code = Errc::bad_input) {
  came_back(self, id, sample_failure(self->state.away.at(id), what, code));
}

/// Handles a sample that came back. Rows are matched by the sample's number: it
/// must be the one that was sent.
void given_back(DispatcherSelf self, std::uint64_t id, Sample back) {
  const auto found = self->state.away.find(id);
  if (found != self->state.away.end() && back.id() != found->second.sample)
    return fail_one(self, id,
                    fmt::format("the actor returned sample {} for it; try "
                                "to set keys on the sample that it received",
                                back.id()));
  came_back(self, id, std::move(back));
}

void failed(DispatcherSelf self, std::uint64_t id, const caf::error& error) {
  const auto found = self->state.away.find(id);
  if (found == self->state.away.end())
    return;
  if (error == caf::sec::request_receiver_down)
    found->second.lost = true; // its failure message may still arrive
  else
    fail_one(self, id, detail::text_of(error));
}

/// Returns how often silence is checked.
std::chrono::milliseconds period_of(const DispatcherSetup& setup) {
  return std::min<std::chrono::milliseconds>(setup.timeout / 4,
                                             std::chrono::seconds(1));
}

void keep_ticking(DispatcherSelf self) {
  auto& state = self->state;
  if (!state.away.empty() && !std::exchange(state.ticks, true))
    self->delayed_send(self, period_of(state.setup), tick_atom::value);
}

/// Fails samples that are lost with their actor, or whose actors are silent.
void tick(DispatcherSelf self) {
  auto& state = self->state;
  state.ticks = false;
  std::vector<std::uint64_t> lost;
  for (const auto& [id, away] : state.away)
    if (away.lost)
      lost.push_back(id);
  for (const auto id : lost)
    fail_one(self, id, "the actor has ended");
  if (state.setup.model_is_asked())
    state.heard = Clock::now();
  if (!state.away.empty() && Clock::now() - state.heard > state.setup.timeout)
    fail_one(
      self, state.away.begin()->first,
      fmt::format("the actor has returned nothing for {} s (samples "
                  "outstanding: {}); try a deadline for its waits, or a longer "
                  "cluster.own_actor_timeout_s",
                  std::chrono::duration_cast<std::chrono::seconds>(
                    Clock::now() - state.heard)
                    .count(),
                  state.away.size()),
      Errc::deadline);
  keep_ticking(self);
}

/// Handles the end of an instance: neither its samples nor later ones come
/// back.
void ended(DispatcherSelf self, const caf::down_msg& down) {
  auto& state = self->state;
  if (down.reason == caf::exit_reason::user_shutdown)
    return; // the run ends too
  const auto& instances = state.setup.instances;
  const auto at = std::ranges::find_if(instances, [&](const auto& instance) {
    return caf::actor_cast<caf::actor_addr>(instance) == down.source;
  });
  const auto instance = static_cast<std::size_t>(at - instances.begin());
  state.ended[instance]
    = "the actor ended itself: " + detail::text_of(down.reason);
  std::vector<std::uint64_t> ids;
  for (const auto& [id, away] : state.away)
    if (away.instance == instance)
      ids.push_back(id);
  for (const auto id : ids)
    fail_one(self, id, state.ended[instance]);
}

void send_one(DispatcherSelf self, const std::string& who, Sample sample,
              std::function<void(CameBack)> reader) {
  auto& state = self->state;
  const auto& instances = state.setup.instances;
  const std::size_t instance = sample.id() % instances.size();
  if (state.away.empty())
    state.heard = Clock::now();
  const auto id = ++state.last_id;
  state.away[id] = {.instance = instance,
                    .sample = sample.id(),
                    .who = who,
                    .came_back = std::move(reader)};
  if (const auto gone = state.ended.find(instance); gone != state.ended.end())
    return fail_one(self, id, gone->second);
  const auto flow = send_arrow(self, sample);
  self
    ->request(instances[instance], caf::infinite, run_atom::value,
              std::move(sample))
    .then(
      [=](Sample& back) {
        receive_arrow(self, flow, back);
        given_back(self, id, std::move(back));
      },
      [=](caf::error& error) { failed(self, id, error); });
  keep_ticking(self);
}

/// Stores the i-th sample of the run.
void arrived(SampleRun& run, std::size_t i, CameBack result) {
  if (const auto* failure = std::get_if<Failure>(&result)) {
    if (run.done)
      std::exchange(run.done, nullptr)(*failure);
    return;
  }
  Sample& back = std::get<Sample>(result);
  if (run.on_sample)
    run.on_sample(back);
  run.samples[i] = std::move(back);
  if (--run.missing == 0 && run.done)
    std::exchange(run.done, nullptr)(std::move(run.samples));
}

void offer(DispatcherSelf self, SampleRun& run) {
  for (Sample& sample : run.samples) {
    auto offered = std::make_shared<OfferedSample>();
    offered->entries = sample.entries();
    self->state.offered[{run.call, run.step, sample.id()}] = offered;
    send_one(self, run.who, std::move(sample), [offered](CameBack back) {
      if (offered->reader)
        offered->reader(std::move(back));
      else
        offered->back = std::move(back);
    });
  }
}

/// Returns whether the sample is with its actor already. A sample that differs
/// from the one offered under its number is sent again.
bool take_offered(DispatcherSelf self, const SampleRun& run,
                  const Sample& sample,
                  const std::function<void(CameBack)>& reader) {
  const auto found
    = self->state.offered.extract(StreamKey{run.call, run.step, sample.id()});
  if (found.empty() || found.mapped()->entries != sample.entries())
    return false;
  OfferedSample& offered = *found.mapped();
  if (offered.back)
    reader(std::move(*offered.back));
  else
    offered.reader = reader;
  return true;
}

/// Drops the samples offered in earlier steps: steps come in order.
void drop_before(DispatcherSelf self, const SampleRun& run) {
  std::erase_if(self->state.offered, [&](const auto& entry) {
    return entry.first.call == run.call && entry.first.step < run.step;
  });
}

void deal(DispatcherSelf self, const std::shared_ptr<SampleRun>& run) {
  if (!run->done)
    return offer(self, *run);
  drop_before(self, *run);
  run->missing = run->samples.size();
  if (run->samples.empty())
    return run->done(std::move(run->samples));
  for (std::size_t i = 0; i < run->samples.size() && run->done; ++i) {
    const auto reader
      = [=](CameBack back) { arrived(*run, i, std::move(back)); };
    if (!take_offered(self, *run, run->samples[i], reader))
      send_one(self, run->who, std::move(run->samples[i]), reader);
  }
}

} // namespace

std::uint64_t WaitingRuns::put(SampleRun run) {
  const std::lock_guard lock{mutex_};
  runs_[++last_id_] = std::make_shared<SampleRun>(std::move(run));
  return last_id_;
}

std::shared_ptr<SampleRun> WaitingRuns::take(std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  return std::move(runs_.extract(id).mapped());
}

SampleDispatcher::behavior_type sample_dispatcher(DispatcherSelf self,
                                                  DispatcherSetup setup) {
  self->state.name = setup.name;
  self->state.setup = std::move(setup);
  for (const auto& instance : self->state.setup.instances)
    self->monitor(instance);
  self->set_down_handler([=](caf::down_msg& down) { ended(self, down); });
  return {
    [=](start_atom, std::uint64_t id) {
      deal(self, self->state.setup.waiting->take(id));
    },
    [=](tick_atom) { tick(self); },
  };
}

} // namespace troupe::actors
