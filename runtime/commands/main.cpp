#include "runtime/launch/startup_signals.hpp"

#include "troupe/app.hpp"

namespace {

// Runs before the constructors of the libraries, which take longer than the
// program's own start. Programs have such an array, libraries do not.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*before_libraries)(int, char**, char**)
  = [](int argc, char** argv, char**) {
      troupe::runtime::end_cleanly_on_startup_signal(argc, argv);
    };

} // namespace

int main(int argc, char** argv) {
  return troupe::App{}.main(argc, argv);
}
