#include "runtime/run_folder/agents_token.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/random_hex.hpp"

#include <fstream>

namespace troupe::runtime {

namespace {

constexpr std::size_t agents_token_bytes = 16;

} // namespace

std::string agents_token(const RunFolder& folder) {
  std::ifstream file(folder.agents_token_file());
  std::string token;
  if (std::getline(file, token) && !token.empty())
    return token;
  token = random_hex(agents_token_bytes);
  replace_private_file(folder.agents_token_file(), token + "\n");
  return token;
}

} // namespace troupe::runtime
