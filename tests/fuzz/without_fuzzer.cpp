// troupe_fuzz [SECONDS] [SEED] of builds without libFuzzer, which GCC has not:
// feeds cut, spliced and overwritten valid inputs to every parser in turn, so
// that each build sees a broken one within seconds. An exception that no parser
// may throw ends it; the input is then in fuzz-TARGET.bin.
#include "tests/fuzz/targets.hpp"
#include "tests/support/places.hpp"
#include "tests/support/temp_folder.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

namespace {

using Random = std::mt19937_64;

std::string damaged(std::string text, const std::string& other,
                    Random& random) {
  for (auto damages = 1 + random() % 4; damages > 0; --damages) {
    const auto at = random() % (text.size() + 1);
    const auto count = random() % 17;
    if (random() % 2 == 0)
      text.replace(at, count, other, random() % (other.size() + 1), count);
    else if (at < text.size())
      text[at] = static_cast<char>(random());
  }
  return random() % 8 == 0 ? text.substr(0, random() % (text.size() + 1))
                           : text;
}

} // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  const troupe::support::TempFolder folder;
  const auto targets = troupe::fuzz::all_targets(
    folder.path(), troupe::support::source_folder() / "examples/tiny");
  for (const auto& target : targets)
    for (const std::string& valid : target.corpus)
      target.read(valid); // throws if an input is no longer valid
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::size_t tried = 0;
  for (; Clock::now() < end; ++tried) {
    const auto& target = targets[tried % targets.size()];
    const auto& corpus = target.corpus;
    const auto input = damaged(corpus[random() % corpus.size()],
                               corpus[random() % corpus.size()], random);
    const auto file = "fuzz-" + target.name + ".bin";
    std::ofstream(file, std::ios::binary) << input; // a crash leaves it
    troupe::fuzz::try_input(target, input);
    std::filesystem::remove(file);
  }
  std::printf("%zu inputs to %zu parsers: no finding\n", tried, targets.size());
}
