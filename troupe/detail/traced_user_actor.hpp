// An actor whose samples are drawn as arrows in the trace: every send is
// followed by exactly one receive. Costs nothing without a trace.
#pragma once

#include "troupe/detail/crash_context.hpp"
#include "troupe/sample.hpp"

namespace caf {
class mailbox_element;
} // namespace caf

namespace troupe::detail {

class TracedUserActor {
public:
  /// Creates the actor's trace state; `track_name` names its track in the
  /// viewer.
  explicit TracedUserActor(std::string track_name)
    : track_name_(std::move(track_name)) {}
  virtual ~TracedUserActor() = default;

  /// Records that the sample is sent in a message named `label` and returns its
  /// arrow, which the sample then carries.
  Sample::Arrow leave(Sample& sample, const char* label);
  /// Records that the reply to `question` has arrived.
  void answered(Sample::Arrow question, const char* label);
  /// Returns the arrow of the message being handled, which answer() will answer
  /// later.
  Sample::Arrow take_question() {
    return std::exchange(question_, {});
  }
  void reply(Sample::Arrow question, const Sample& sample);

  /// Scope in which the actor handles a message.
  class MessageScope {
  public:
    MessageScope(TracedUserActor& reader, caf::mailbox_element& element);
    ~MessageScope();
    MessageScope(const MessageScope&) = delete;
    MessageScope& operator=(const MessageScope&) = delete;

  private:
    CrashContext crash_context_;
    TracedUserActor* reader_ = nullptr; ///< null: no trace
    std::uint32_t name_ = 0;
    std::int64_t begun_ns_ = 0;
  };

private:
  std::uint32_t track();
  void send_reply(Sample::Arrow question, std::uint64_t bytes,
                  std::int64_t time_ns);

  std::string track_name_;
  std::optional<std::uint32_t> track_;
  Sample::Arrow question_; ///< arrow of the message being handled
};

} // namespace troupe::detail
