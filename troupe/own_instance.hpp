// How an own actor is made of its factory: the actor that CAF would make, with
// a row in the trace. The arrow of a sample ends where it arrives, and that of
// the answer begins where it is given.
#pragma once

#include "troupe/caf.hpp"
#include "troupe/correspondent.hpp"
#include "troupe/model.hpp"
#include "troupe/waits.hpp"

namespace troupe {

using run_atom = caf::atom_constant<caf::atom("run")>;

/// Takes a sample with the keys of its call's reads() and gives it back with
/// those of writes(). Floats travel as bits.
using SampleActor
  = caf::typed_actor<caf::replies_to<run_atom, Sample>::with<Sample>>;

namespace detail {

using extend_atom = caf::atom_constant<caf::atom("extend")>;
/// Gives a sample its next turn, of at most so many tokens (0: no limit).
using ModelActor = caf::typed_actor<
  caf::replies_to<extend_atom, Sample, std::uint32_t>::with<Sample>>;

template <class Self>
class OwnInstance : public std::remove_pointer_t<Self>, public Correspondent {
public:
  using Base = std::remove_pointer_t<Self>;
  using Make = std::function<SampleActor::behavior_type(Self)>;

  OwnInstance(caf::actor_config& config, std::string row, Make make)
    : Base(config),
      Correspondent(std::move(row)),
      make_(std::move(make)) {}

  /// What a handler throws is the answer to its message, or else the actor's
  /// end.
  caf::invoke_message_result consume(caf::mailbox_element& element) override {
    const Letter letter(*this, element);
    try {
      return Base::consume(element);
    } catch (...) {
      if (!element.mid.is_request()) { // CAF would keep the words to itself
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

/// What `self`'s factory gets as its Model.
template <class Self>
Model model_for(Self self, const ModelActor& actor) {
  return Model([self, actor](Sample sample, TurnOptions options) {
    auto* sender = dynamic_cast<Correspondent*>(self); // an OwnInstance
    const Sample::Arrow arrow = sender->leave(sample, "extend");
    auto answer
      = ask<Sample>(self, std::chrono::milliseconds(0), actor,
                    extend_atom::value, std::move(sample), options.max_tokens);
    return std::move(answer).then([=](Sample extended) {
      sender->answered(arrow, "extend");
      return extended;
    });
  });
}

} // namespace detail

} // namespace troupe

/// CAF's own sentence, "unexpected handler at index 0", says neither whose
/// handler nor what is wrong with it.
template <int NumHandlers, class Handlers>
struct caf::detail::static_error_printer<
  NumHandlers, 0, Handlers,
  caf::detail::type_list<
    caf::replies_to<troupe::run_atom, troupe::Sample>::with<troupe::Sample>>> {
  static_assert(NumHandlers == 0,
                "the handler of an own actor takes (troupe::run_atom, "
                "troupe::Sample) and returns the troupe::Sample, or "
                "caf::result<troupe::Sample> for a coroutine");
};
