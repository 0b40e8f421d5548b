#include "runtime/trace/run_graph.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <utility>

namespace troupe::runtime {

namespace {

using nlohmann::json;

/// Returns the keys of each producer that `call` reads.
json edges_into(const plans::Workflow& workflow, std::size_t i) {
  const plans::Call& call = workflow.calls[i];
  json edges = json::array();
  for (const auto producer : plans::producers(workflow, i)) {
    json keys = json::array();
    for (const auto& key : call.reads)
      if (workflow.writer(key) == &workflow.calls[producer])
        keys.push_back(key);
    edges.push_back({{"from", workflow.calls[producer].name},
                     {"to", call.name},
                     {"keys", std::move(keys)}});
  }
  return edges;
}

json call_json(const plans::Call& call, const plans::ExecutionPlan& plan) {
  json devices = json::array();
  std::string strategy;
  if (const auto placed = plan.calls.find(call.name);
      placed != plan.calls.end() && !placed->second.devices.empty()) {
    for (const Rank device : placed->second.devices)
      devices.push_back(device.value);
    strategy = to_string(placed->second.strategy);
  }
  return {{"name", call.name},     {"kind", plans::to_string(call.kind)},
          {"role", call.role},     {"reads", call.reads},
          {"writes", call.writes}, {"devices", std::move(devices)},
          {"strategy", strategy},  {"lag", plan.lag_of(call.name)}};
}

} // namespace

std::string dataflow_json(const plans::Workflow& workflow,
                          const plans::ExecutionPlan& plan) {
  json graph{{"workflow", workflow.name},
             {"calls", json::array()},
             {"edges", json::array()}};
  for (std::size_t i = 0; i < workflow.calls.size(); ++i) {
    graph["calls"].push_back(call_json(workflow.calls[i], plan));
    for (auto& edge : edges_into(workflow, i))
      graph["edges"].push_back(std::move(edge));
  }
  return graph.dump(2);
}

std::string run_graph_json(const RunFolder& folder) {
  std::ifstream file(folder.dataflow_file());
  auto graph = json::parse(file, nullptr, false);
  if (!graph.is_object())
    graph = {{"calls", json::array()},
             {"edges", json::array()},
             {"error", "the run folder has no dataflow.json"}};
  graph["name"] = folder.name();
  return graph.dump(-1, ' ', false, json::error_handler_t::replace);
}

Causes run_causes(const RunFolder& folder) {
  const auto graph = json::parse(run_graph_json(folder));
  Causes causes;
  for (const auto& call : graph["calls"]) {
    auto& own = causes[call["name"]];
    if (call["kind"] == "generate")
      own.push_back("move");
  }
  for (const auto& edge : graph["edges"])
    causes[edge["to"]].push_back(edge["from"]);
  if (!causes.empty())
    causes["move"] = {};
  return causes;
}

CallKinds run_call_kinds(const RunFolder& folder) {
  const auto graph = json::parse(run_graph_json(folder));
  CallKinds kinds;
  for (const auto& call : graph["calls"])
    kinds[call["name"]] = call["kind"];
  return kinds;
}

} // namespace troupe::runtime
