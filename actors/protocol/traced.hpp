// Base of all actors here: every message that one handles becomes a slice of
// its track in the trace, with the receiving end of the sender's arrow inside
// it. CAF 0.17 has no hooks for this, so the virtual `consume` is overridden.
#pragma once

#include "actors/protocol/messages.hpp"
#include "config/trace/trace.hpp"

#include <caf/detail/serialized_size.hpp>

#include <cstdint>
#include <string>

namespace troupe::actors {

/// Returns the size of `value` on the wire, for the trace: a message between
/// actors of one process is counted as if it left the process.
template <class T>
std::uint64_t message_bytes(caf::actor_system& system, const T& value) {
  return caf::detail::serialized_size(system, value);
}

/// Returns the text of a message's first element ("run"), "reply" for replies.
std::string label_of(const caf::mailbox_element& element);
/// Returns the Context of a message, or that of the Sample that it carries;
/// else an empty one.
Context context_of(const caf::mailbox_element& element);

/// Returns the arrow of a reply: the request's, with the top bit set.
constexpr std::uint64_t reply_flow(std::uint64_t flow) {
  return flow | std::uint64_t{1} << 63;
}

template <class Base>
class Traced : public Base {
public:
  using Base::Base;

  caf::invoke_message_result consume(caf::mailbox_element& element) override {
    if (!trace::enabled())
      return Base::consume(element);
    const auto text = trace::name(label_of(element));
    const Context context = context_of(element);
    trace::begin(track(), text, context.step.value);
    if (context.flow != 0)
      trace::receive(track(), text, context.flow, context.step.value);
    const auto result = Base::consume(element);
    trace::end(track(), text);
    return result;
  }

  /// Returns this actor's track in the viewer, e.g. "call actor_gen".
  trace::Track track() {
    if (!named_) {
      track_ = trace::track(this->name(), trace::TrackKind::actor);
      named_ = true;
    }
    return track_;
  }

private:
  trace::Track track_{};
  bool named_ = false;
};

/// Self pointer of an actor with interface `Handle` and state `State`.
template <class Handle, class State>
using Self = caf::stateful_actor<State, Traced<typename Handle::base>>*;

} // namespace troupe::actors
