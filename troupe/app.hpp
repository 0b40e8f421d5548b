// The program as a library: what you register, and every verb of the command
// line. `int main(int argc, char** argv) { return app().main(argc, argv); }` is
// master and worker alike; workers whose binary or registry differs are
// refused.
#pragma once

#include "troupe/section.hpp"
#include "troupe/workflow.hpp"

#include <memory>

namespace troupe {

struct Spawn; // troupe/actor.hpp
namespace runtime {
struct OwnProgram;
} // namespace runtime

namespace detail {

using Spawner = std::function<void(Spawn&)>;

/// An own actor by the name that traces and messages show.
struct OwnActor {
  std::string name;
  const void* factory = nullptr;
  std::string section = {}; ///< of settings that it takes; empty: none
  Spawner spawner;
};

// troupe/actor.hpp defines these two
template <class F>
Spawner make_spawner(F factory);
template <class F, class S>
Spawner make_spawner(F factory, const Section<S>& section);

} // namespace detail

class App {
public:
  App(); ///< copies share what they hold

  /// A section of settings, read by all workflows of this App.
  template <class S>
  App& add(const Section<S>& section) {
    return add_section(section.parts());
  }
  /// An own actor: `factory` is a CAF behaviour of SampleActor.
  template <class F>
  App& spawnable(std::string name, F factory) {
    return add_actor({.name = std::move(name),
                      .factory = detail::factory_id(factory),
                      .spawner = detail::make_spawner(factory)});
  }
  /// One that takes a section's settings as its argument.
  template <class F, class S>
  App& spawnable(std::string name, F factory, const Section<S>& section) {
    return add_actor({.name = std::move(name),
                      .factory = detail::factory_id(factory),
                      .section = section.parts().name,
                      .spawner = detail::make_spawner(factory, section)});
  }
  App& add(Workflow workflow);

  /// Registers what was added, then runs the verb that the command line names.
  /// Every error ends here: one line `error: ...` on stderr and the exit code
  /// of INTERFACE ("Verbs").
  int main(int argc, char** argv);
  /// What was added.
  const runtime::OwnProgram& program() const;

private:
  App& add_section(detail::OwnSection section);
  App& add_actor(detail::OwnActor actor);

  struct Parts;
  std::shared_ptr<Parts> parts_;
};

} // namespace troupe
