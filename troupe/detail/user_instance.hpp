// Creates a user-defined actor from its factory: the actor that CAF would make,
// with a row in the trace. The arrow of a sample ends where it arrives, and the
// arrow of the reply begins where it is sent.
#pragma once

#include "troupe/detail/caf.hpp"
#include "troupe/detail/traced_user_actor.hpp"
#include "troupe/model.hpp"
#include "troupe/waits.hpp"

namespace troupe {

using run_atom = caf::atom_constant<caf::atom("run")>;

/// Takes a sample with the keys of its call's reads() and returns it with those
/// of writes(). Floats are sent as bits.
using SampleActor
  = caf::typed_actor<caf::replies_to<run_atom, Sample>::with<Sample>>;

namespace detail {

using extend_atom = caf::atom_constant<caf::atom("extend")>;
/// Extends a sample by its next turn, of at most the given number of tokens (0:
/// no limit), by a role (empty: the call's own).
using ModelActor
  = caf::typed_actor<caf::replies_to<extend_atom, Sample, std::uint32_t,
                                     std::string>::with<Sample>>;

template <class Self>
class UserInstance : public std::remove_pointer_t<Self>,
                     public TracedUserActor {
public:
  using Base = std::remove_pointer_t<Self>;
  using Make = std::function<SampleActor::behavior_type(Self)>;

  UserInstance(caf::actor_config& config, std::string row, Make make)
    : Base(config),
      TracedUserActor(std::move(row)),
      make_(std::move(make)) {}

  /// Turns an exception of a handler into the reply to its message or, if the
  /// message expects none, ends the actor.
  caf::invoke_message_result consume(caf::mailbox_element& element) override {
    const MessageScope scope(*this, element);
    try {
      return Base::consume(element);
    } catch (...) {
      if (!element.mid.is_request()) { // CAF would drop the exception's text
        this->quit(caf::make_error(caf::sec::runtime_error,
                                   text_of(std::current_exception())));
        return caf::invoke_message_result::consumed;
      }
      this->template make_response_promise<Sample>().deliver(caf::make_error(
        caf::sec::runtime_error, text_of(std::current_exception())));
      return caf::invoke_message_result::consumed;
    }
  }

protected:
  SampleActor::behavior_type make_behavior() override {
    return make_(this);
  }

private:
  Make make_;
};

/// Returns the Model that `self`'s factory receives.
template <class Self>
Model model_for(Self self, const ModelActor& actor) {
  return Model(
    [self, actor](Sample sample, TurnOptions options, const std::string& role) {
      auto* sender = dynamic_cast<TracedUserActor*>(self); // a UserInstance
      const Sample::Arrow arrow = sender->leave(sample, "extend");
      auto reply = ask<Sample>(self, std::chrono::milliseconds(0), actor,
                               extend_atom::value, std::move(sample),
                               options.max_tokens, role);
      return std::move(reply).then([=](Sample extended) {
        sender->answered(arrow, "extend");
        return extended;
      });
    });
}

} // namespace detail

} // namespace troupe

/// Replaces CAF's message "unexpected handler at index 0", which names neither
/// the handler nor its mistake.
template <int NumHandlers, class Handlers>
struct caf::detail::static_error_printer<
  NumHandlers, 0, Handlers,
  caf::detail::type_list<
    caf::replies_to<troupe::run_atom, troupe::Sample>::with<troupe::Sample>>> {
  static_assert(NumHandlers == 0,
                "the handler of a user-defined actor takes (troupe::run_atom, "
                "troupe::Sample) and returns the troupe::Sample, or "
                "caf::result<troupe::Sample> for a coroutine");
};
