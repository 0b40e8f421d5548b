#include "plans/call_layers.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// By call of the workflow: how many calls with devices lie before it.
std::vector<std::uint32_t> call_depths(const Workflow& workflow) {
  std::vector<std::uint32_t> depth(workflow.calls.size(), 0);
  for (std::size_t i = 0; i < workflow.calls.size(); ++i)
    for (const auto producer : producers(workflow, i)) {
      const auto& before = workflow.calls[producer];
      const auto own = before.kind == CallKind::function ? 0u : 1u;
      depth[i] = std::max(depth[i], depth[producer] + own);
    }
  return depth;
}

} // namespace

std::vector<std::vector<bool>> calls_behind(const Workflow& workflow) {
  const auto count = workflow.calls.size();
  std::vector<std::vector<bool>> behind(count, std::vector<bool>(count, false));
  for (std::size_t i = 0; i < count; ++i)
    for (const auto producer : producers(workflow, i)) {
      behind[i][producer] = true;
      for (std::size_t k = 0; k < count; ++k)
        behind[i][k] = behind[i][k] || behind[producer][k];
    }
  return behind;
}

std::vector<std::vector<std::uint32_t>> call_layers(const Workflow& workflow) {
  const auto depth = call_depths(workflow);
  std::vector<std::vector<std::uint32_t>> layers;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < workflow.calls.size(); ++i) {
    if (workflow.calls[i].kind == CallKind::function)
      continue;
    layers.resize(std::max<std::size_t>(layers.size(), depth[i] + 1));
    layers[depth[i]].push_back(number++);
  }
  return layers;
}

bool has_barriers(const Workflow& workflow) {
  const auto depth = call_depths(workflow);
  const auto behind = calls_behind(workflow);
  const auto waits = [&](std::size_t call, std::size_t before) {
    const bool next_layer = workflow.calls[call].kind != CallKind::function
                            && workflow.calls[before].kind != CallKind::function
                            && depth[call] == depth[before] + 1;
    return !next_layer || behind[call][before];
  };
  for (std::size_t i = 0; i < workflow.calls.size(); ++i)
    for (std::size_t k = 0; k < workflow.calls.size(); ++k)
      if (!waits(i, k))
        return false;
  return true;
}

} // namespace troupe::plans
