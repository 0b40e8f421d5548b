// User-defined actors: CAF typed actors from Sample to Sample. An actor has
// state, processes many samples concurrently, and may await other actors and
// programs in coroutines; one that takes a Model leads conversations with it
// (troupe/model.hpp).
//
//   using Self = SampleActor::stateful_pointer<State>;
//   SampleActor::behavior_type checker(Self self, Settings settings) {
//     return {[=](run_atom, Sample x) -> caf::result<Sample> { ... }};
//   }
//   SampleActor::behavior_type solver(Self self, Model model) { ... }
#pragma once

#include "troupe/app.hpp"
#include "troupe/detail/caf.hpp"
#include "troupe/detail/user_instance.hpp"
#include "troupe/future.hpp"
#include "troupe/model.hpp"
#include "troupe/process_pool.hpp"
#include "troupe/task.hpp"
#include "troupe/waits.hpp"

namespace troupe {

/// Request to spawn one instance of a user-defined actor on a worker.
struct Spawn {
  caf::actor_system& system;
  const std::any& section;       ///< settings passed to the factory, if any
  std::string row;               ///< label of its row in the trace
  detail::ModelActor model = {}; ///< model of a conversation leader, if any
  SampleActor actor = {};        ///< result: the spawned actor
};

namespace detail {

/// Signature of a factory: after self it takes a Model, a section's settings,
/// both or neither.
template <class F>
struct SampleFactory {
  template <class... Section>
  static constexpr bool fits = false;
};
template <class Self, class... A>
struct SampleFactory<SampleActor::behavior_type (*)(Self, A...)> {
  using Pointer = Self;
  using Function = SampleActor::behavior_type (*)(Self, A...);
  static constexpr bool takes_model = (std::is_same_v<A, Model> || ...);
  template <class... Section>
  static constexpr bool fits
    = std::is_invocable_v<
        Function, Self,
        Section...> || std::is_invocable_v<Function, Self, Model, Section...>;
};

/// Spawns make(self), which calls the factory.
template <class F, class... Section>
void spawn_user(Spawn& spawn, F factory, const Section&... section) {
  using Self = typename SampleFactory<F>::Pointer;
  spawn.actor = spawn.system.spawn<UserInstance<Self>>(
    spawn.row, [factory, section..., model = spawn.model](Self self) {
      if constexpr (SampleFactory<F>::takes_model)
        return factory(self, model_for(self, model), section...);
      else
        return factory(self, section...);
    });
}

/// Returns the function with which the App spawns instances; `pick` selects the
/// section's settings from a Spawn.
template <class... Section, class F, class Pick>
Spawner spawner_of(F factory, Pick pick) {
  constexpr bool fits = SampleFactory<F>::template fits<Section...>;
  static_assert(fits,
                "a user-defined actor is a function that gives "
                "SampleActor::behavior_type and takes its self pointer, a "
                "troupe::Model if it leads conversations, and the settings of "
                "the section that spawnable() names");
  if constexpr (!fits)
    return {};
  else
    return [=](Spawn& spawn) { pick(spawn, factory); };
}

template <class F>
Spawner make_spawner(F factory) {
  return spawner_of<>(factory,
                      [](Spawn& spawn, auto made) { spawn_user(spawn, made); });
}

template <class F, class S>
Spawner make_spawner(F factory, const Section<S>&) {
  return spawner_of<S>(factory, [](Spawn& spawn, auto made) {
    spawn_user(spawn, made, std::any_cast<const S&>(spawn.section));
  });
}

} // namespace detail

} // namespace troupe
