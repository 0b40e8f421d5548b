#include "runtime/run_folder/context_limits.hpp"

#include "config/base/error.hpp"
#include "config/settings/workflow_traits.hpp"
#include "models/data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::runtime {

namespace {

/// Positions that sequences of a workflow must fit in.
struct ContextRoom {
  std::string role;          ///< the one with the shortest context
  std::int64_t tokens = 0;   ///< size of that context
  std::int64_t response = 0; ///< tokens of the longest response; 0: none
  std::string key;           ///< the setting that limits rows

  std::int64_t for_rows() const {
    return tokens - response;
  }
  /// Returns "1024 positions of actor (max_position_embeddings of its
  /// config.json)".
  std::string sentence() const {
    return fmt::format(
      "the {} positions of {}{}", tokens, role,
      response > 0
        ? fmt::format(" less rollout.max_new_tokens ({})", response)
        : std::string(" (max_position_embeddings of its config.json)"));
  }
};

ContextRoom room_of(const Settings& settings, const plans::Workflow& workflow,
                    const RoleShapes& shapes) {
  ContextRoom room;
  for (const auto& role : workflow.roles) {
    const auto tokens = shapes.at(role.name).context_tokens();
    if (room.role.empty() || tokens < room.tokens) {
      room.role = role.name;
      room.tokens = tokens;
    }
  }
  if (std::ranges::find(workflow.calls, plans::CallKind::generate,
                        &plans::Call::kind)
      != workflow.calls.end())
    room.response = settings.rollout.max_new_tokens;
  room.key = workflow.samples_are_prompts ? "data.max_prompt_tokens"
                                          : "data.max_tokens";
  return room;
}

} // namespace

void check_allowed_lengths(const Settings& settings,
                           const plans::Workflow& workflow,
                           const RoleShapes& shapes) {
  const auto room = room_of(settings, workflow, shapes);
  if (room.response > 0 && room.for_rows() < 1)
    throw ConfigError(
      {.place = nearest_place_of(settings, "rollout.max_new_tokens"),
       .path = "rollout.max_new_tokens",
       .expected = fmt::format("at most {} (the {} positions of {}, "
                               "max_position_embeddings of its config.json, "
                               "hold a prompt too)",
                               room.tokens - 1, room.tokens, room.role),
       .got = std::to_string(room.response),
       .hint = fmt::format("rollout.max_new_tokens={}",
                           std::max<std::int64_t>(1, room.tokens / 2))});
  const auto limit = workflow.samples_are_prompts
                       ? &DataSettings::max_prompt_tokens
                       : &DataSettings::max_tokens;
  const std::int64_t allowed = settings.data.*limit;
  // kto makes sequences that are longer than the rows
  const bool all_may_be_shorter
    = allowed == DataSettings{}.*limit
      && workflow_data(settings.workflow) != DataKind::labelled;
  if (all_may_be_shorter || allowed <= room.for_rows())
    return;
  throw ConfigError({.place = place_of(settings, room.key),
                     .path = room.key,
                     .expected = fmt::format("at most {}, {}", room.for_rows(),
                                             room.sentence()),
                     .got = std::to_string(allowed),
                     .hint = fmt::format("{}={}", room.key, room.for_rows())});
}

void check_row_lengths(const Settings& settings,
                       const plans::Workflow& workflow,
                       const RoleShapes& shapes,
                       const models::Dataset& dataset) {
  const auto room = room_of(settings, workflow, shapes);
  const auto& report = dataset.report();
  if (std::cmp_less_equal(report.longest, room.for_rows()))
    return;
  throw ConfigError({.place = dataset.longest_place(),
                     .path = workflow.samples_are_prompts ? "prompt" : "",
                     .expected = fmt::format("at most {} tokens, {}",
                                             room.for_rows(), room.sentence()),
                     .got = std::to_string(report.longest),
                     .hint = fmt::format("{}={}", room.key, room.for_rows())});
}

void check_whole_rows(const ModelShape& shape, const std::string& role,
                      const models::Dataset& dataset) {
  const auto& report = dataset.report();
  const std::int64_t tokens = shape.context_tokens();
  if (std::cmp_less_equal(report.longest, tokens))
    return;
  throw ConfigError(
    {.place = dataset.longest_place(),
     .path = "",
     .expected = fmt::format("at most {} tokens, the positions of {} "
                             "(max_position_embeddings of its config.json)",
                             tokens, role),
     .got = std::to_string(report.longest),
     .hint = "a shorter row"});
}

} // namespace troupe::runtime
