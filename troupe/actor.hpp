// Own actors: CAF typed actors from Sample to Sample. An actor has state, many
// samples in flight, and may wait for other actors and programs in coroutines;
// one that takes a Model leads conversations with it (troupe/model.hpp).
//
//   using Self = SampleActor::stateful_pointer<State>;
//   SampleActor::behavior_type checker(Self self, Settings settings) {
//     return {[=](run_atom, Sample x) -> caf::result<Sample> { ... }};
//   }
//   SampleActor::behavior_type solver(Self self, Model model) { ... }
#pragma once

#include "troupe/app.hpp"
#include "troupe/caf.hpp"
#include "troupe/future.hpp"
#include "troupe/model.hpp"
#include "troupe/own_instance.hpp"
#include "troupe/process_pool.hpp"
#include "troupe/task.hpp"
#include "troupe/waits.hpp"

namespace troupe {

/// One instance of an own actor on a worker.
struct Spawn {
  caf::actor_system& system;
  const std::any& section;       ///< the settings that it takes, if any
  std::string row;               ///< in the trace
  detail::ModelActor model = {}; ///< whose conversations it leads, if any
  SampleActor actor = {};        ///< what was made
};

namespace detail {

/// What follows a factory's self: a Model, a section's settings, both or none.
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
void spawn_own(Spawn& spawn, F factory, const Section&... section) {
  using Self = typename SampleFactory<F>::Pointer;
  spawn.actor = spawn.system.spawn<OwnInstance<Self>>(
    spawn.row, [factory, section..., model = spawn.model](Self self) {
      if constexpr (SampleFactory<F>::takes_model)
        return factory(self, model_for(self, model), section...);
      else
        return factory(self, section...);
    });
}

/// How the App makes an instance; `pick` gives the section of a Spawn.
template <class... Section, class F, class Pick>
Spawner spawner_of(F factory, Pick pick) {
  constexpr bool fits = SampleFactory<F>::template fits<Section...>;
  static_assert(fits,
                "an own actor is a function that gives "
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
                      [](Spawn& spawn, auto made) { spawn_own(spawn, made); });
}

template <class F, class S>
Spawner make_spawner(F factory, const Section<S>&) {
  return spawner_of<S>(factory, [](Spawn& spawn, auto made) {
    spawn_own(spawn, made, std::any_cast<const S&>(spawn.section));
  });
}

} // namespace detail

} // namespace troupe
