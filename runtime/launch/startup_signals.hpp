// SIGTERM, SIGHUP and Ctrl-C before a session exists that could save anything
// (libraries load, settings are read, rows are counted): one line and the exit
// code of a stopped run, as later. StopSignals takes over from here.
#pragma once

namespace troupe::runtime {

/// Installs the handlers for commands that run sessions; other commands end by
/// the signal, as they would anyway. Uses nothing that needs a constructor: may
/// run before all of them.
void end_cleanly_on_startup_signal(int argc, char** argv);

} // namespace troupe::runtime
