// The program as a library: registers workflows, user-defined actors and
// sections of settings, and runs every command of the command line. `int
// main(int argc, char** argv) { return app().main(argc, argv); }` is both
// master and worker; workers with another binary or registry are refused.
#pragma once

#include "troupe/section.hpp"
#include "troupe/workflow.hpp"

#include <memory>

namespace troupe {

struct Spawn; // troupe/actor.hpp
namespace runtime {
struct UserProgram;
} // namespace runtime

namespace detail {

using Spawner = std::function<void(Spawn&)>;

/// A user-defined actor with the name that traces and messages show.
struct UserActor {
  std::string name;
  const void* factory = nullptr;
  std::string section = {}; ///< section of settings that it takes; empty: none
  Spawner spawner;
};

// defined in troupe/actor.hpp
template <class F>
Spawner make_spawner(F factory);
template <class F, class S>
Spawner make_spawner(F factory, const Section<S>& section);

} // namespace detail

class App {
public:
  App(); ///< copies share their contents

  /// Adds a section of settings, available to all workflows of this App.
  template <class S>
  App& add(const Section<S>& section) {
    return add_section(section.parts());
  }
  /// Registers a user-defined actor: `factory` returns a CAF behavior of
  /// SampleActor.
  template <class F>
  App& spawnable(std::string name, F factory) {
    return add_actor({.name = std::move(name),
                      .factory = detail::factory_id(factory),
                      .spawner = detail::make_spawner(factory)});
  }
  /// Registers a user-defined actor that takes a section's settings as an
  /// argument.
  template <class F, class S>
  App& spawnable(std::string name, F factory, const Section<S>& section) {
    return add_actor({.name = std::move(name),
                      .factory = detail::factory_id(factory),
                      .section = section.parts().name,
                      .spawner = detail::make_spawner(factory, section)});
  }
  App& add(Workflow workflow);

  /// Registers everything that was added, then runs the command that the
  /// command line names. Every error ends here: one line `error: ...` on stderr
  /// and its exit code (ExitCode in config/base/error.hpp).
  int main(int argc, char** argv);
  /// Returns everything that was added.
  const runtime::UserProgram& program() const;

private:
  App& add_section(detail::UserSection section);
  App& add_actor(detail::UserActor actor);

  struct Parts;
  std::shared_ptr<Parts> parts_;
};

} // namespace troupe
