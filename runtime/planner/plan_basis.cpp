#include "runtime/planner/plan_basis.hpp"

#include "plans/cost/hardware_sources.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace troupe::runtime {

nlohmann::ordered_json basis_json(const plans::ClusterHardware& hardware) {
  const auto counts = plans::count_sources(hardware);
  auto numbers = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < plans::num_source_kinds; ++i) {
    const auto kind = static_cast<plans::SourceKind>(i);
    std::string name = plans::to_string(kind);
    std::ranges::replace(name, ' ', '_');
    numbers[name] = counts[kind];
  }
  nlohmann::ordered_json basis = {{"hardware", hardware.name},
                                  {"profiled", plans::is_profiled(hardware)},
                                  {"numbers", std::move(numbers)},
                                  {"note", plans::basis_of(hardware)}};
  for (std::uint32_t node = 0; node < hardware.num_nodes(); ++node)
    basis["nodes"].push_back(hardware.of_node(node).name);
  return basis;
}

} // namespace troupe::runtime
