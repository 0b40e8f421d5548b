// Messages to a run's workers before its first step: their number and the run
// when they join, their peers and what they load once all have joined.
#pragma once

#include "actors/membership/files_actor.hpp"
#include "actors/membership/join_actor.hpp"
#include "actors/membership/setup_actor.hpp"
#include "runtime/run_folder/run_secret.hpp"
#include "runtime/session/run_basis.hpp"

#include <filesystem>
#include <vector>

namespace troupe::runtime {

/// Returns the setup for each worker that joins; the caller adds the callback
/// for when all have.
actors::JoinSetup make_join_actor(const RunBasis& basis,
                                  const RunSecret& secret);

/// Returns what workers on other hosts need to find out whether they share the
/// run's files, all but the actor that they ask if not; empty on this host.
/// `probe` is a file in the run folder.
actors::FileShare make_file_share(const RunBasis& basis,
                                  const std::filesystem::path& probe);

/// Returns the files that workers read, all but where the master listens.
actors::FilesSetup make_files_setup(const RunBasis& basis);

/// Returns the setup of all of them; the caller adds the callbacks for its end.
actors::SetupInputs make_setup(const RunBasis& basis,
                               const std::vector<actors::Joined>& workers);

} // namespace troupe::runtime
