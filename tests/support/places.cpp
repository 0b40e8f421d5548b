#include "tests/support/places.hpp"

#include <cstdlib>

namespace troupe::support {

std::filesystem::path shared_folder() {
  const char* given = std::getenv("TROUPE_SHARED");
  return given != nullptr ? std::filesystem::path(given)
                          : source_folder() / "../shared";
}

std::filesystem::path source_folder() {
  const char* given = std::getenv("TROUPE_SOURCE");
  return given != nullptr ? given : TROUPE_SOURCE_DIR;
}

bool second_opinion() {
  const char* given = std::getenv("TROUPE_TEST_GOLDEN");
  return given != nullptr && std::string(given) == "shared";
}

std::filesystem::path golden_folder() {
  return second_opinion() ? shared_folder() / "golden"
                          : source_folder() / "tests/golden/data";
}

std::filesystem::path golden_rows(const std::string& kind) {
  if (!second_opinion())
    return golden_folder() / "rows" / (kind + ".jsonl");
  return shared_folder() / "data"
         / (kind == "pairs" ? "gsm8k_pairs.jsonl" : "gsm8k_test.jsonl");
}

} // namespace troupe::support
