#include "models/registry.hpp"

#include "models/functions.hpp"
#include "models/loss.hpp"

namespace troupe::models {

std::vector<std::string> registered_names() {
  std::vector<std::string> names;
  for (const auto& name : losses().names())
    names.push_back("loss " + name);
  for (const auto& name : functions().names())
    names.push_back("function " + name);
  return names;
}

} // namespace troupe::models
