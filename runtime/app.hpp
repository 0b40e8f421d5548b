// The program as a library: every verb of the command line, master and worker
// alike. A user's own binary is `return troupe::App{}.main(argc, argv);`.
#pragma once

namespace troupe {

class App {
public:
  /// Runs the verb that the command line names. Every error ends here: one line
  /// `error: ...` on stderr and the exit code of INTERFACE ("Verbs").
  int main(int argc, char** argv);
};

} // namespace troupe
