#include "config/model/families/joined_gate_up.hpp"

#include "config/model/families/renamed.hpp"

#include <array>

namespace troupe {

namespace {

constexpr std::array<Rename, 2> gate_up_parts
  = {{{"gate_proj", "gate_up_proj"}, {"up_proj", "gate_up_proj"}}};

} // namespace

StoredAs stored_in_gate_up(const ModelShape& shape,
                           const ParameterShape& parameter) {
  const std::string joined = renamed(parameter.name, gate_up_parts);
  if (joined == parameter.name)
    return {};
  const bool is_gate = parameter.name.find("gate_proj") != std::string::npos;
  return {.name = joined,
          .first_row = is_gate ? 0 : shape.intermediate_size,
          .rows = 2 * shape.intermediate_size};
}

} // namespace troupe
