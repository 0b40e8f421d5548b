// troupe_fuzz [SECONDS] [SEED] [TARGET...]: damages valid inputs and feeds them
// to every parser in turn, or to those that are named. Ends with exit code 1 at
// the first exception that no parser may throw, or by a crash; the input is
// then in fuzz-TARGET.bin of the current folder. Deterministic in the seed,
// apart from where the time ends it.
#include "config/error.hpp"
#include "net/wire.hpp"

#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/places.hpp"
#include "tests/support/temp_folder.hpp"
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

namespace {

using troupe::fuzz::Random;
using troupe::fuzz::Target;

constexpr rlim_t memory_limit_bytes = rlim_t{4} << 30;

/// Empty, or what went wrong that must not.
std::string finding(const Target& target, const std::string& input) {
  try {
    target.read(input);
  } catch (const troupe::ConfigError&) {
  } catch (const troupe::PlanError&) {
  } catch (const troupe::FailureError&) {
  } catch (const troupe::net::WireError&) {
  } catch (const std::invalid_argument&) {
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void keep(const std::string& name, const std::string& input) {
  std::ofstream(name, std::ios::binary) << input;
}

/// Those that are named; all, if none is.
std::vector<Target> chosen(std::vector<Target> targets,
                           const std::set<std::string>& names) {
  for (const std::string& name : names)
    if (std::ranges::find(targets, name, &Target::name) == targets.end())
      throw std::runtime_error("there is no target '" + name + "'");
  if (!names.empty())
    std::erase_if(targets, [&](const Target& target) {
      return !names.contains(target.name);
    });
  return targets;
}

/// A parser that asks for more than any input needs gets std::bad_alloc, a
/// finding, instead of the machine's memory. (Sanitizers reserve more than that
/// by themselves and have a limit of their own.)
void limit_memory() {
#ifndef __SANITIZE_ADDRESS__
  const rlimit limit{memory_limit_bytes, memory_limit_bytes};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

/// Inputs tried, or -1 after a finding.
long try_all(const std::vector<Target>& targets, double seconds,
             std::uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  Random random(seed);
  long tried = 0;
  while (Clock::now() < end) {
    const Target& target
      = targets[static_cast<std::size_t>(tried) % targets.size()];
    const std::string& valid = target.corpus[random() % target.corpus.size()];
    const std::string input
      = troupe::fuzz::mutate(valid, target.corpus, random);
    const std::string file = "fuzz-" + target.name + ".bin";
    keep(file, input); // a crash leaves it behind
    const std::string what = finding(target, input);
    if (!what.empty()) {
      std::fprintf(stderr, "%s: %s (input in %s)\n", target.name.c_str(),
                   what.c_str(), file.c_str());
      return -1;
    }
    std::filesystem::remove(file);
    ++tried;
  }
  return tried;
}

} // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const troupe::support::TempFolder folder;
  limit_memory();
  const auto targets = chosen(
    troupe::fuzz::all_targets(folder.path(), troupe::support::source_folder()
                                               / "examples/tiny"),
    {argv + std::min(argc, 3), argv + argc});
  for (const Target& target : targets)
    for (const std::string& valid : target.corpus)
      target.read(valid); // throws if an input is not valid any more
  const long tried = try_all(targets, seconds, seed);
  if (tried < 0)
    return 1;
  std::printf("%ld inputs to %zu parsers in %.0f s, seed %llu: no finding\n",
              tried, targets.size(), seconds,
              static_cast<unsigned long long>(seed));
  return 0;
}
