#include "actors/sample_dealer.hpp"

#include "troupe/waits.hpp"
#include <fmt/format.h>

namespace troupe::actors {

namespace {

using DealerSelf = Self<SampleDealer, DealerState>;

Failure sample_failure(const std::string& who, std::uint32_t sample,
                       const caf::error& error) {
  return {.code = Errc::bad_input,
          .who = who,
          .what = fmt::format("sample {}: {}", sample, detail::text_of(error)),
          .cause = ""};
}

std::uint64_t send_arrow(DealerSelf self, Sample& sample) {
  if (!trace::enabled())
    return 0;
  const auto step = sample.arrow().step;
  sample.set_arrow({trace::next_flow(), step});
  trace::send(self->track(), trace::name("run"), sample.arrow().flow, step,
              message_bytes(self->system(), sample));
  return sample.arrow().flow;
}

void receive_arrow(DealerSelf self, std::uint64_t flow, const Sample& sample) {
  if (flow != 0)
    trace::receive(self->track(), trace::name("run"), reply_flow(flow),
                   sample.arrow().step);
}

void send_one(DealerSelf self, const std::string& who, Sample sample,
              const std::function<void(CameBack)>& came_back) {
  const auto id = sample.id();
  const auto& instances = self->state.instances;
  const auto flow = send_arrow(self, sample);
  self
    ->request(instances[id % instances.size()], caf::infinite, run_atom::value,
              std::move(sample))
    .then(
      [=](Sample& back) {
        receive_arrow(self, flow, back);
        came_back(std::move(back));
      },
      [=](caf::error& error) { came_back(sample_failure(who, id, error)); });
}

/// The i-th sample of the run.
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

void offer(DealerSelf self, SampleRun& run) {
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

/// Whether the sample is with its actor already. One that is another than was
/// offered under its number goes anew.
bool take_offered(DealerSelf self, const SampleRun& run, const Sample& sample,
                  const std::function<void(CameBack)>& reader) {
  const auto found
    = self->state.offered.extract(OfferKey{run.call, run.step, sample.id()});
  if (found.empty() || found.mapped()->entries != sample.entries())
    return false;
  OfferedSample& offered = *found.mapped();
  if (offered.back)
    reader(std::move(*offered.back));
  else
    offered.reader = reader;
  return true;
}

/// Steps come in their order.
void drop_before(DealerSelf self, const SampleRun& run) {
  std::erase_if(self->state.offered, [&](const auto& entry) {
    return entry.first.call == run.call && entry.first.step < run.step;
  });
}

void deal(DealerSelf self, const std::shared_ptr<SampleRun>& run) {
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

SampleDealer::behavior_type sample_dealer(DealerSelf self, std::string name,
                                          std::shared_ptr<WaitingRuns> waiting,
                                          std::vector<SampleActor> instances) {
  self->state.name = std::move(name);
  self->state.waiting = std::move(waiting);
  self->state.instances = std::move(instances);
  return {[=](start_atom, std::uint64_t id) {
    deal(self, self->state.waiting->take(id));
  }};
}

} // namespace troupe::actors
