#include "troupe/detail/traced_user_actor.hpp"

#include "actors/protocol/traced.hpp"
#include "config/base/ids.hpp"
#include "config/trace/trace_at.hpp"

#include <fmt/format.h>

namespace troupe::detail {

namespace {

std::uint64_t bytes_of(const Sample& sample) {
  std::uint64_t bytes = 0;
  for (const auto& entry : sample.entries())
    bytes += entry.key.size() + entry.bytes.size();
  return bytes;
}

/// Returns the sample that a message carries; nullptr: none.
Sample* sample_in(caf::mailbox_element& element) {
  auto& content = element.content();
  if (!element.mid.is_request() || content.size() < 2
      || !content.match_element<Sample>(1))
    return nullptr;
  return &content.get_mutable_as<Sample>(1);
}

std::string work_on(const std::string& row, const Sample* sample) {
  const auto who = "user-defined actor " + row;
  return sample == nullptr
           ? who
           : fmt::format("{} with sample {} of step {}", who, sample->id(),
                         step_number(StepId{sample->arrow().step}));
}

} // namespace

std::uint32_t TracedUserActor::track() {
  if (!track_)
    track_ = static_cast<std::uint32_t>(
      trace::track(track_name_, trace::TrackKind::actor));
  return *track_;
}

Sample::Arrow TracedUserActor::leave(Sample& sample, const char* label) {
  if (!trace::enabled())
    return {};
  const Sample::Arrow arrow{trace::next_flow(), sample.arrow().step};
  sample.set_arrow(arrow);
  trace::send(trace::Track{track()}, trace::name(label), arrow.flow, arrow.step,
              bytes_of(sample));
  return arrow;
}

void TracedUserActor::answered(Sample::Arrow question, const char* label) {
  if (question.flow != 0)
    trace::receive(trace::Track{track()}, trace::name(label),
                   actors::reply_flow(question.flow), question.step);
}

void TracedUserActor::reply(Sample::Arrow question, const Sample& sample) {
  send_reply(question, bytes_of(sample), trace::now_ns());
}

void TracedUserActor::send_reply(Sample::Arrow question, std::uint64_t bytes,
                                 std::int64_t time_ns) {
  if (question.flow != 0)
    trace::send_at(time_ns, trace::Track{track()}, trace::name("reply"),
                   actors::reply_flow(question.flow), question.step, bytes);
}

TracedUserActor::MessageScope::MessageScope(TracedUserActor& reader,
                                            caf::mailbox_element& element)
  : crash_context_(work_on(reader.track_name_, sample_in(element))) {
  if (!trace::enabled())
    return;
  reader_ = &reader;
  const trace::Track track{reader.track()};
  const auto name = trace::name(actors::label_of(element));
  name_ = static_cast<std::uint32_t>(name);
  Sample* sample = sample_in(element);
  const Sample::Arrow arrow
    = sample == nullptr ? Sample::Arrow{} : sample->arrow();
  trace::begin(track, name, arrow.step);
  begun_ns_ = trace::now_ns();
  if (arrow.flow == 0)
    return;
  trace::receive(track, name, arrow.flow, arrow.step);
  sample->set_arrow({.flow = 0, .step = arrow.step}); // the arrow ends here
  reader.question_ = arrow;
}

TracedUserActor::MessageScope::~MessageScope() {
  if (reader_ == nullptr)
    return;
  // CAF has delivered what the handler returned: the reader may have been
  // faster
  reader_->send_reply(reader_->take_question(), 0, begun_ns_);
  trace::end(trace::Track{reader_->track()}, trace::Name{name_});
}

} // namespace troupe::detail
