// The keepers of a run, which hold its snapshots in the memory of its hosts.
// Their name is made of the run folder's path, so that a master that is started
// again finds those of the master before.
#pragma once

#include "net/keeper/keeper_client.hpp"

#include <filesystem>
#include <string>

namespace troupe::runtime {

/// Returns the name of the keepers of the run in that folder.
std::string keeper_name(const std::filesystem::path& run_folder);

/// Returns a client of the keeper on this host, which is never started by it.
net::KeeperClient keeper_client(const std::filesystem::path& run_folder);

/// Ends the keeper of this host and removes the record: nothing is to be
/// continued from snapshots any more.
void end_snapshots(const std::filesystem::path& run_folder);

} // namespace troupe::runtime
