// `troupe doctor`: whether the hosts of a configuration share its run folder,
// asked over ssh for a file that is there for a moment.
#pragma once

#include "config/settings/settings.hpp"
#include "runtime/commands/doctor.hpp"

#include <map>
#include <string>

namespace troupe::runtime {

enum class SharedFilesReply : std::uint8_t { shares, does_not, none };

/// Returns the check of these replies, by host; none: what asks them when.
DoctorCheck
shared_files_check(const Settings& settings,
                   const std::map<std::string, SharedFilesReply>& replies);

/// Asks the hosts of the settings, if workers are started there over ssh.
DoctorCheck examine_shared_files(const Settings& settings);

} // namespace troupe::runtime
