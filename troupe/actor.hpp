// Own actors: CAF typed actors from Sample to Sample. An actor has state, many
// samples in flight, and may wait for other actors and programs in coroutines.
//
//   using Self = SampleActor::stateful_pointer<State>;
//   SampleActor::behavior_type checker(Self self, Settings settings) {
//     return {[=](run_atom, Sample x) -> caf::result<Sample> { ... }};
//   }
#pragma once

#include <caf/all.hpp>

#include "troupe/app.hpp"
#include "troupe/future.hpp"
#include "troupe/process_pool.hpp"

namespace troupe {

using run_atom = caf::atom_constant<caf::atom("run")>;

/// Takes a sample with the keys of its call's reads() and gives it back with
/// those of writes(). Floats travel as bits.
using SampleActor
  = caf::typed_actor<caf::replies_to<run_atom, Sample>::with<Sample>>;

/// One instance of an own actor on a worker.
struct Spawn {
  caf::actor_system& system;
  const std::any& section; ///< the settings that it takes, if any
  SampleActor actor = {};
};

namespace detail {

template <class F>
constexpr bool is_sample_factory = false;
template <class... A>
constexpr bool is_sample_factory<SampleActor::behavior_type (*)(A...)> = true;

template <class F>
Spawner make_spawner(F factory) {
  static_assert(is_sample_factory<F>, "an own actor is a function that gives "
                                      "SampleActor::behavior_type");
  return [factory](Spawn& spawn) { spawn.actor = spawn.system.spawn(factory); };
}

template <class F, class S>
Spawner make_spawner(F factory, const Section<S>&) {
  static_assert(is_sample_factory<F>, "an own actor is a function that gives "
                                      "SampleActor::behavior_type");
  return [factory](Spawn& spawn) {
    spawn.actor
      = spawn.system.spawn(factory, std::any_cast<const S&>(spawn.section));
  };
}

} // namespace detail

} // namespace troupe
