#include "actors/user/model_actor.hpp"

#include "models/generate/turn_tokens.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::actors {

namespace {

using ModelSelf = Self<TurnActor, ModelState>;

Failure no_conversation(const ModelState& state, SampleId sample) {
  return {.code = Errc::bad_input,
          .who = state.name,
          .what = fmt::format("sample {} is extended outside of its "
                              "conversation, or by another worker",
                              sample.value),
          .cause = ""};
}

Failure no_role(const ModelState& state, const std::string& role,
                const Speaking& speaking) {
  return {.code = Errc::bad_input,
          .who = state.name,
          .what = fmt::format("no role '{}' speaks in its conversations, only "
                              "{}",
                              role, fmt::join(speaking.roles, ", ")),
          .cause = ""};
}

/// Returns the index of a role among the speakers, or their number.
std::uint32_t speaker_of(const Speaking& speaking, const std::string& role) {
  if (role.empty())
    return 0;
  return static_cast<std::uint32_t>(std::ranges::find(speaking.roles, role)
                                    - speaking.roles.begin());
}

caf::result<Sample> extend(ModelSelf self, Sample sample,
                           std::uint32_t max_tokens, const std::string& role) {
  const auto& setup = self->state.setup;
  Reply<Sample> reply{
    self,
    {sample.arrow().flow, StepId{sample.arrow().step}, setup->incarnation}};
  const SampleId id{sample.id()};
  const auto speaking = setup->conversations->find(id);
  if (!speaking) {
    reply.fail(no_conversation(self->state, id));
    return reply.promise();
  }
  const auto speaker = speaker_of(*speaking, role);
  if (speaker == speaking->roles.size()) {
    reply.fail(no_role(self->state, role, *speaking));
    return reply.promise();
  }
  models::take_appended(sample, setup->tokenizer);
  auto turn = models::next_turn(sample, max_tokens, speaker);
  sample.set_arrow({.flow = 0, .step = sample.arrow().step});
  auto end = std::make_shared<models::TurnEnd>();
  const auto callback = self->state.open.open<ModelSelf, Sample>(
    self, reply, [=, talk = std::move(sample)](Sample& extended) mutable {
      models::take_turn(talk, *end, setup->tokenizer, speaker);
      extended = std::move(talk);
    });
  setup->conversations->turn_asked();
  speaking->turns->ask(std::move(turn),
                       [=](std::variant<models::TurnEnd, Failure> came) {
                         setup->conversations->turn_given();
                         if (auto* failure = std::get_if<Failure>(&came))
                           return callback(*failure);
                         *end = std::move(std::get<models::TurnEnd>(came));
                         callback(Sample{});
                       });
  return reply.promise();
}

} // namespace

void OpenConversations::open(std::span<const SampleId> samples,
                             Speaking speaking) {
  const auto shared = std::make_shared<const Speaking>(std::move(speaking));
  const std::lock_guard lock{mutex_};
  for (const SampleId sample : samples)
    open_[sample] = shared;
}

void OpenConversations::close(std::span<const SampleId> samples) {
  const std::lock_guard lock{mutex_};
  for (const SampleId sample : samples)
    open_.erase(sample);
}

std::shared_ptr<const Speaking> OpenConversations::find(SampleId sample) const {
  const std::lock_guard lock{mutex_};
  const auto found = open_.find(sample);
  return found == open_.end() ? nullptr : found->second;
}

TurnActor::behavior_type model_actor(ModelSelf self,
                                     std::shared_ptr<const ModelSetup> setup) {
  self->state.name = "model " + setup->call;
  self->state.setup = std::move(setup);
  return {
    [=](detail::extend_atom, Sample& sample, std::uint32_t max_tokens,
        const std::string& role) {
      return extend(self, std::move(sample), max_tokens, role);
    },
    [=](done_atom, std::uint64_t id) { self->state.open.finish(id); },
  };
}

} // namespace troupe::actors
