#include "runtime/live/run_graph.hpp"

#include "config/error.hpp"
#include "config/settings.hpp"
#include "plans/execution_plan.hpp"
#include "plans/workflow.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>

namespace troupe::runtime {

namespace {

using nlohmann::json;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The keys of each producer that `call` reads.
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

void describe(const RunFolder& folder, json& graph) {
  const auto settings = parse_settings(text_of(folder.config_file()),
                                       folder.config_file().string());
  const auto plan = plans::parse_plan(text_of(folder.plan_file()),
                                      folder.plan_file().string());
  const auto workflow = plans::make_workflow(settings);
  graph["workflow"] = workflow.name;
  graph["steps"] = settings.run.steps;
  graph["cluster"] = {{"nodes", plan.cluster.nodes},
                      {"devices_per_node", plan.cluster.devices_per_node},
                      {"workers_per_node", plan.cluster.workers_per_node}};
  for (std::size_t i = 0; i < workflow.calls.size(); ++i) {
    graph["calls"].push_back(call_json(workflow.calls[i], plan));
    for (auto& edge : edges_into(workflow, i))
      graph["edges"].push_back(std::move(edge));
  }
}

} // namespace

std::string run_graph_json(const RunFolder& folder) {
  json graph{{"name", folder.name()},
             {"calls", json::array()},
             {"edges", json::array()}};
  try {
    describe(folder, graph);
  } catch (const ConfigError& error) {
    graph["error"] = error.what(); // shown on the page in the graph's place
  }
  return graph.dump();
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

} // namespace troupe::runtime
