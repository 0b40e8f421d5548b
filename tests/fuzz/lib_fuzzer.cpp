// The functions that libFuzzer calls (preset fuzz): TROUPE_FUZZ names the
// target, without it the names are printed. They work in the current folder and
// write the target's valid inputs to seeds/. An exception that no parser may
// throw ends the program, and libFuzzer keeps the input.
#include "tests/fuzz/targets.hpp"
#include "tests/support/places.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

troupe::fuzz::Target target;

void choose(const std::string& name) {
  const auto targets = troupe::fuzz::all_targets(
    ".", troupe::support::source_folder() / "examples/tiny");
  const auto found
    = std::ranges::find(targets, name, &troupe::fuzz::Target::name);
  if (found != targets.end()) {
    target = *found;
    return;
  }
  for (const auto& each : targets)
    std::puts(each.name.c_str());
  std::exit(name.empty() ? 0 : 1);
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) { // NOLINT: its name
  const char* name = std::getenv("TROUPE_FUZZ");
  choose(name == nullptr ? "" : name);
  std::filesystem::create_directories("seeds");
  for (std::size_t i = 0; i < target.corpus.size(); ++i) {
    target.read(target.corpus[i]); // throws if one is no longer valid
    std::ofstream("seeds/" + std::to_string(i), std::ios::binary)
      << target.corpus[i];
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, // NOLINT
                                      std::size_t size) {
  troupe::fuzz::try_input(
    target, std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
