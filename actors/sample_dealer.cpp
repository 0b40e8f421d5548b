#include "actors/sample_dealer.hpp"

#include "troupe/waits.hpp"
#include <fmt/format.h>

namespace troupe::actors {

namespace {

using DealerSelf = Self<SampleDealer, DealerState>;

Failure sample_failure(const SampleRun& run, std::uint32_t sample,
                       const caf::error& error) {
  return {.code = Errc::bad_input,
          .who = run.who,
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

void deal_one(DealerSelf self, const std::shared_ptr<SampleRun>& run,
              std::size_t i) {
  Sample sample = std::move(run->samples[i]);
  const auto id = sample.id();
  const auto& instances = self->state.instances;
  const auto flow = send_arrow(self, sample);
  self
    ->request(instances[id % instances.size()], caf::infinite, run_atom::value,
              std::move(sample))
    .then(
      [=](Sample& back) {
        receive_arrow(self, flow, back);
        if (run->on_sample)
          run->on_sample(back);
        run->samples[i] = std::move(back);
        if (--run->missing == 0 && run->done)
          std::exchange(run->done, nullptr)(std::move(run->samples));
      },
      [=](caf::error& error) {
        if (run->done)
          std::exchange(run->done, nullptr)(sample_failure(*run, id, error));
      });
}

void deal(DealerSelf self, const std::shared_ptr<SampleRun>& run) {
  run->missing = run->samples.size();
  if (run->samples.empty())
    return run->done(std::move(run->samples));
  for (std::size_t i = 0; i < run->samples.size(); ++i)
    deal_one(self, run, i);
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
