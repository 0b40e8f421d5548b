#include "actors/checkpoint/calls_in_flight.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors {

namespace {

using nlohmann::json;

template <class Tag>
std::vector<std::uint32_t> numbers_of(const std::vector<Id<Tag>>& ids) {
  std::vector<std::uint32_t> numbers;
  for (const auto id : ids)
    numbers.push_back(id.value);
  return numbers;
}

Bits bits_of(const json& value) {
  Bits bits;
  bits.value = value.get<std::uint64_t>();
  return bits;
}

json json_of(const RunDone& part) {
  json sums = json::array();
  for (const auto& sum : part.sums)
    sums.push_back({{"name", sum.name},
                    {"kind", sum.kind},
                    {"sum_bits", sum.sum.value},
                    {"weight_bits", sum.weight.value}});
  json carried = json::array();
  for (const auto& value : part.carried)
    carried.push_back({{"name", value.name}, {"bits", value.value.value}});
  return {{"holder", part.holder.value},
          {"samples", numbers_of(part.samples)},
          {"tokens", part.tokens},
          {"keys", part.keys},
          {"sums", sums},
          {"carried", carried}};
}

RunDone part_of(const json& value) {
  RunDone part;
  part.holder = WorkerId{value.at("holder").get<std::uint32_t>()};
  for (const auto& sample : value.at("samples"))
    part.samples.emplace_back(sample.get<std::uint32_t>());
  part.tokens = value.at("tokens").get<std::vector<std::uint32_t>>();
  part.keys = value.at("keys").get<std::vector<std::string>>();
  for (const auto& sum : value.at("sums"))
    part.sums.push_back({sum.at("name"), sum.at("kind"),
                         bits_of(sum.at("sum_bits")),
                         bits_of(sum.at("weight_bits"))});
  for (const auto& carried : value.at("carried"))
    part.carried.push_back({carried.at("name"), bits_of(carried.at("bits"))});
  return part;
}

} // namespace

std::map<WorkerId, std::vector<RowSet>>
rows_by_holder(std::span<const CallInFlight> calls) {
  std::map<WorkerId, std::vector<RowSet>> rows;
  for (const auto& call : calls)
    for (const auto& part : call.done.parts)
      if (!part.keys.empty() && !part.samples.empty())
        rows[part.holder].push_back({call.step, part.keys, part.samples});
  return rows;
}

WorkerId new_holder(WorkerId holder, std::uint32_t num_workers) {
  return WorkerId{holder.value % num_workers};
}

std::vector<CallInFlight> with_new_holders(std::vector<CallInFlight> calls,
                                           std::uint32_t num_workers) {
  for (auto& call : calls)
    for (auto& part : call.done.parts)
      part.holder = new_holder(part.holder, num_workers);
  return calls;
}

json json_of(const CallInFlight& call) {
  json parts = json::array();
  for (const auto& part : call.done.parts)
    parts.push_back(json_of(part));
  return {{"step", call.step.value}, {"task", call.task}, {"parts", parts}};
}

CallInFlight call_in_flight_of(const json& value) {
  CallInFlight call;
  call.step = StepId{value.at("step").get<std::uint32_t>()};
  call.task = value.at("task");
  for (const auto& part : value.at("parts"))
    call.done.parts.push_back(part_of(part));
  return call;
}

} // namespace troupe::actors
