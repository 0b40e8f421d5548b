#include "runtime/planning/measure_in_child.hpp"

#include "config/base/error.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/base/temporary_folder.hpp"
#include "runtime/launch/run_program.hpp"

namespace troupe::runtime {

MachineProfile measure_in_child(const Settings& settings,
                                const std::string& program) {
  const auto scratch = scratch_folder("troupe-profile-");
  const auto config = scratch.path() / "config.yaml";
  const auto found = scratch.path() / "hardware.yaml";
  const auto log = scratch.path() / "log";
  replace_file(config, print_settings(settings));
  const auto exit = run_program({.name = "profile",
                                 .argv = {program, "profile", config.string(),
                                          "--quick", "--out", found.string()},
                                 .output_file = log});
  if (exit->code != 0 || exit->signal != 0)
    throw FailureError(Failure{Errc::io, "profile",
                               "measuring ended with " + net::to_string(*exit)
                                 + ": " + last_line(log),
                               ""});
  return {.hardware = plans::load_hardware(found.string()),
          .table = plans::load_profile(found.string())};
}

} // namespace troupe::runtime
