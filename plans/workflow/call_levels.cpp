#include "plans/workflow/call_levels.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

/// Returns for each call of the workflow how many calls with devices precede
/// it.
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

std::vector<std::vector<bool>> awaited_calls(const Workflow& workflow) {
  const auto count = workflow.calls.size();
  std::vector<std::vector<bool>> awaited(count,
                                         std::vector<bool>(count, false));
  for (std::size_t i = 0; i < count; ++i)
    for (const auto producer : producers(workflow, i)) {
      awaited[i][producer] = true;
      for (std::size_t k = 0; k < count; ++k)
        awaited[i][k] = awaited[i][k] || awaited[producer][k];
    }
  return awaited;
}

std::vector<std::vector<std::uint32_t>> call_levels(const Workflow& workflow) {
  const auto depth = call_depths(workflow);
  std::vector<std::vector<std::uint32_t>> levels;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < workflow.calls.size(); ++i) {
    if (workflow.calls[i].kind == CallKind::function)
      continue;
    levels.resize(std::max<std::size_t>(levels.size(), depth[i] + 1));
    levels[depth[i]].push_back(number++);
  }
  return levels;
}

bool has_barriers(const Workflow& workflow) {
  const auto depth = call_depths(workflow);
  const auto awaited = awaited_calls(workflow);
  const auto waits = [&](std::size_t call, std::size_t before) {
    const bool next_level = workflow.calls[call].kind != CallKind::function
                            && workflow.calls[before].kind != CallKind::function
                            && depth[call] == depth[before] + 1;
    return !next_level || awaited[call][before];
  };
  for (std::size_t i = 0; i < workflow.calls.size(); ++i)
    for (std::size_t k = 0; k < workflow.calls.size(); ++k)
      if (!waits(i, k))
        return false;
  return true;
}

} // namespace troupe::plans
