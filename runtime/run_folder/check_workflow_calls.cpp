#include "runtime/run_folder/check_workflow_calls.hpp"

#include "actors/user/reward_work.hpp"
#include "actors/worker_base/file_entries.hpp"
#include "actors/worker_base/user_calls.hpp"
#include "config/base/did_you_mean.hpp"
#include "config/base/error.hpp"
#include "config/settings/workflow_file.hpp"
#include "models/losses/loss.hpp"
#include "models/rl/functions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::runtime {

namespace {

using Names = std::vector<std::string>;

/// A call of the file, with what the program knows of its code.
struct KnownCall {
  const FileCall& call;
  Place place;

  [[noreturn]] void mistake(const std::string& key, const std::string& expected,
                            const std::string& got,
                            const std::string& hint) const {
    throw ConfigError({.place = place,
                       .path = fmt::format("calls.{}.{}", call.name, key),
                       .expected = expected,
                       .got = got,
                       .hint = hint});
  }
};

bool is_one_of(const std::string& name, const Names& names) {
  return std::ranges::find(names, name) != names.end();
}

/// Returns the names that the call may have for its code.
Names known_fns(const FileCall& call) {
  if (call.kind == "train")
    return models::losses().names();
  if (call.kind == "generate")
    return {"generate"};
  auto names = models::functions().names();
  names.emplace_back(actors::rewards_fn);
  return names;
}

/// Names "workflow.call" are checked where the graph is made.
void check_fn(const KnownCall& known) {
  const auto& call = known.call;
  const auto names = known_fns(call);
  if (call.kind == "infer" || call.fn.find('.') != call.fn.npos
      || is_one_of(call.fn, names))
    return;
  known.mistake(call.kind == "function" ? "function" : "fn",
                fmt::format("a {} ({})",
                            call.kind == "train" ? "loss" : "function",
                            fmt::join(names, ", ")),
                "'" + call.fn + "'", nearest_word(call.fn, names));
}

void check_reads(const KnownCall& known, const Settings& settings,
                 const std::vector<models::KnownKey>& reads) {
  const auto& call = known.call;
  Names words = call.reads;
  for (const auto& [key, word] : call.renames)
    std::ranges::replace(words, key, word);
  for (const auto& key : reads)
    if (key.is_used(settings) && !is_one_of(key.name, words))
      known.mistake(
        "reads", fmt::format("all keys that {} reads", call.fn),
        fmt::format("them without {}", key.name),
        fmt::format("`{0}`, or a mapping that has `KEY: {0}`", key.name));
}

/// Checks that the file has each value that the code carries, and no other.
void check_carries(const KnownCall& known, const Settings& settings,
                   const std::vector<models::KnownCarried>& carries) {
  const auto& fn = known.call.fn;
  Names all;
  for (const auto& value : carries)
    all.push_back(value.key.name);
  Names said;
  for (const auto& value : known.call.carries) {
    said.push_back(value.name);
    if (!is_one_of(value.name, all))
      throw ConfigError(
        {.place = value.place,
         .path
         = fmt::format("calls.{}.carries.{}", known.call.name, value.name),
         .expected = all.empty()
                       ? fmt::format("none, as {} carries no value", fn)
                       : fmt::format("a value that {} carries ({})", fn,
                                     fmt::join(all, ", ")),
         .got = "'" + value.name + "'",
         .hint = all.empty() ? "" : nearest_word(value.name, all)});
  }
  for (const auto& [key, initial] : carries)
    if (key.is_used(settings) && !is_one_of(key.name, said))
      known.mistake("carries",
                    fmt::format("{}, which {} hands from step to step under "
                                "these settings",
                                key.name, fn),
                    said.empty() ? "nothing"
                                 : fmt::format("{}", fmt::join(said, ", ")),
                    fmt::format("carries: {{{}: {}}}", key.name, initial));
}

void check_user(const KnownCall& known, const Settings& settings,
                const actors::UserEntry& user) {
  std::vector<models::KnownCarried> carries;
  for (const auto& value : user.call.carried_out)
    carries.push_back({{value.name}, fmt::format("{}", value.initial)});
  check_carries(known, settings, carries);
}

void check_function(const KnownCall& known, const Settings& settings) {
  const auto& fn = known.call.fn;
  const bool asks = fn == actors::rewards_fn;
  const auto entry
    = asks ? models::FunctionEntry{.name = fn,
                                   .reads = {{"sequence_ids"}, {"loss_mask"}}}
           : models::functions().find(fn);
  check_reads(known, settings, entry.reads);
  check_carries(known, settings, entry.carries);
}

/// Runs before the graph is made, where a misspelt name would show elsewhere.
void check_known_calls(const WorkflowFile& file, const Settings& settings) {
  for (const auto& call : file.calls) {
    const KnownCall known{call, file.places.at("calls." + call.name)};
    check_fn(known);
    if (call.python) {
      check_python_function(call, known.place);
      if (call.kind == "train")
        check_reads(known, settings, {{"sequence_ids"}, {"loss_mask"}});
    } else if (const auto* user = actors::find_user_entry(call.fn))
      check_user(known, settings, *user);
    else if (call.fn.find('.') != call.fn.npos)
      continue; // a loss, or an unknown name
    else if (call.kind == "train")
      check_reads(known, settings, models::losses().find(call.fn).reads);
    else if (call.kind == "function")
      check_function(known, settings);
  }
}

/// Checks heads: a loss of this program may need one that the role of the file
/// does not have.
void check_trained_heads(const plans::Workflow& workflow,
                         const plans::WorkflowPlaces& places) {
  for (const auto& call : workflow.calls) {
    if (call.kind != plans::CallKind::train)
      continue;
    const auto& loss = models::losses().find(call.fn);
    const bool scalar = loss.exposes.values || loss.exposes.scores;
    check_head(workflow, call,
               scalar ? plans::Head::scalar : plans::Head::vocabulary, places);
  }
}

} // namespace

plans::Workflow known_workflow(const Settings& settings) {
  if (!is_workflow_file(settings.workflow))
    return plans::make_workflow(settings);
  const auto file = read_workflow_file(settings.workflow);
  check_known_calls(file, settings);
  actors::add_file_entries(file);
  auto workflow = plans::make_workflow(settings);
  check_trained_heads(workflow, file.places);
  return workflow;
}

} // namespace troupe::runtime
