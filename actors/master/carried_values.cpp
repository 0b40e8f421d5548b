#include "actors/master/carried_values.hpp"

namespace troupe::actors {

std::map<std::string, double> carried_at(const MasterState& state,
                                         StepId step) {
  auto carried = state.progress.carried;
  for (const auto& [of, report] : state.progress.reports)
    for (const auto& [name, value] : report.carried)
      if (of <= step)
        carried[name] = value;
  return carried;
}

std::vector<Carried>
carried_list(const std::map<std::string, double>& carried) {
  std::vector<Carried> list;
  for (const auto& [name, value] : carried)
    list.push_back({name, Bits{value}});
  return list;
}

} // namespace troupe::actors
