#include "plans/workflow/workflow.hpp"

#include "config/base/error.hpp"
#include "plans/plan/plan_names.hpp"
#include "plans/workflow/second_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace troupe::plans {

namespace {

template <class Named>
const Named* find_named(const std::vector<Named>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? nullptr : &*found;
}

bool contains(const std::vector<std::string>& keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const auto& one : all)
    names.push_back(one.name);
  return names;
}

/// A workflow being checked, and the places of its calls and roles in a file.
struct Examined {
  const Workflow& workflow;
  const WorkflowPlaces& places;

  /// Throws ConfigError: all mistakes of a workflow are its author's. One
  /// sentence, at the line of `what` if that is in a file.
  [[noreturn]] void refuse(const std::string& what,
                           const std::string& text) const {
    const auto at = places.find(what);
    throw ConfigError(at == places.end() ? Place{} : at->second,
                      fmt::format("workflow {}: {}", workflow.name, text));
  }
};

std::string place_name(const Call& call) {
  return "calls." + call.name;
}

std::string place_name(const Role& role) {
  return "roles." + role.name;
}

/// Checks names: roles are folders of checkpoints, both are keys of settings
/// and plans.
template <class Named>
void check_names(const Examined& examined, const std::vector<Named>& all,
                 std::string_view what) {
  std::set<std::string_view> seen;
  for (const auto& one : all) {
    const auto refuse = [&](const std::string& text) {
      examined.refuse(place_name(one), text);
    };
    if (one.name.empty())
      refuse(fmt::format("a {} has no name", what));
    if (!is_plain_name(one.name))
      refuse(fmt::format("{} '{}' has more in its name than letters, digits, "
                         "_ and -",
                         what, one.name));
    if (!seen.insert(one.name).second)
      refuse(fmt::format("{} {} occurs twice", what, one.name));
  }
}

void check_role_of(const Examined& examined, const Call& call) {
  const auto& workflow = examined.workflow;
  const bool is_function = call.kind == CallKind::function;
  const auto refuse
    = [&](const std::string& text) { examined.refuse(place_name(call), text); };
  if (is_function && !call.role.empty())
    refuse(fmt::format("function {} must not have a role, got {}", call.name,
                       call.role));
  if (!is_function && !workflow.find_role(call.role))
    refuse(fmt::format("call {}: unknown role '{}'{}", call.name, call.role,
                       nearest_hint(call.role, names_of(workflow.roles))));
  if (call.kind == CallKind::train && !workflow.role(call.role).trained)
    refuse(fmt::format("call {} trains role {}, which is not declared as "
                       "trained",
                       call.name, call.role));
  if (const auto why = why_not_with(workflow, call); !why.empty())
    refuse(why);
}

void check_roles(const Examined& examined) {
  const auto& workflow = examined.workflow;
  for (const auto& call : workflow.calls)
    check_role_of(examined, call);
  for (const auto& role : workflow.roles) {
    const auto uses = [&](const Call& c) { return c.role == role.name; };
    const auto trains
      = [&](const Call& c) { return uses(c) && c.kind == CallKind::train; };
    if (std::ranges::none_of(workflow.calls, uses)
        && !is_second_role(workflow, role.name))
      examined.refuse(place_name(role),
                      fmt::format("no call uses role {}", role.name));
    if (role.name == "state")
      examined.refuse(place_name(role),
                      "checkpoints have a folder `state` of their own; try "
                      "another name for role state");
    if (role.trained && std::ranges::none_of(workflow.calls, trains))
      examined.refuse(place_name(role),
                      fmt::format("no call trains role {}", role.name));
  }
}

/// Checks EMA roles: each has weights of its own, updated from a trained role.
void check_followers(const Examined& examined) {
  const auto& workflow = examined.workflow;
  for (const auto& role : workflow.roles) {
    if (!role.ema)
      continue;
    const auto& name = role.ema->role;
    const auto* tracked = workflow.find_role(name);
    const auto wrong = [&](const std::string& why) {
      examined.refuse(place_name(role), fmt::format("role {} follows {}{}",
                                                    role.name, name, why));
    };
    if (tracked == nullptr)
      wrong(", which is no role"
            + nearest_hint(name, names_of(workflow.roles)));
    if (role.trained)
      wrong(" and is trained itself; try one of the two");
    if (!tracked->trained)
      wrong(", which is not trained; try a role that is");
    if (tracked->scalar_head != role.scalar_head)
      wrong(fmt::format(", and only {} has a scalar head; try the same of both",
                        tracked->scalar_head ? name : role.name));
  }
}

void check_writers(const Examined& examined) {
  const auto& workflow = examined.workflow;
  for (const auto& call : workflow.calls) {
    const auto refuse = [&](const std::string& text) {
      examined.refuse(place_name(call), text);
    };
    for (const auto& key : call.writes) {
      const auto* first = workflow.writer(key);
      if (first != &call)
        refuse(fmt::format("key {} has two writers: {} and {}", key,
                           first->name, call.name));
      if (std::ranges::count(call.writes, key) > 1)
        refuse(fmt::format("call {} writes key {} twice", call.name, key));
      if (contains(workflow.dataset_keys, key))
        refuse(fmt::format("key {} comes from the data set, {} must not write "
                           "it",
                           key, call.name));
    }
    for (const auto& rename : call.renames)
      if (!contains(call.reads, rename.key)
          && !contains(call.writes, rename.key))
        refuse(fmt::format("call {} renames key {}, which it neither reads nor "
                           "writes",
                           call.name, rename.key));
  }
}

void check_readers(const Examined& examined) {
  const auto& workflow = examined.workflow;
  std::vector<std::string> known = workflow.dataset_keys;
  std::set<std::string> read;
  for (const auto& call : workflow.calls) {
    known.insert(known.end(), call.writes.begin(), call.writes.end());
    read.insert(call.reads.begin(), call.reads.end());
  }
  for (const auto& call : workflow.calls) {
    for (const auto& key : call.reads)
      if (!contains(known, key))
        examined.refuse(
          place_name(call),
          fmt::format("call {} reads key '{}', which nobody writes{}",
                      call.name, key, nearest_hint(key, known)));
    const auto is_read
      = [&](const std::string& key) { return read.contains(key); };
    if (!call.writes.empty() && std::ranges::none_of(call.writes, is_read))
      examined.refuse(
        place_name(call),
        fmt::format("nobody reads what call {} writes", call.name));
  }
  for (const auto& key : workflow.dataset_keys)
    if (!read.contains(key))
      examined.refuse("", fmt::format("nobody reads data-set key {}", key));
}

/// Walks producers backwards from a call that never is ready to a repeated one.
std::string cycle_text(const Workflow& workflow,
                       const std::vector<bool>& done) {
  std::size_t at = 0;
  while (done[at])
    ++at;
  std::vector<std::size_t> path;
  while (std::ranges::find(path, at) == path.end()) {
    path.push_back(at);
    for (const auto before : producers(workflow, at))
      if (!done[before]) {
        at = before;
        break;
      }
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  std::string text = workflow.calls[at].name;
  for (auto i = path.rbegin(); i != path.rend(); ++i)
    text += " -> " + workflow.calls[*i].name;
  return text;
}

void check_cycles(const Examined& examined) {
  const auto& workflow = examined.workflow;
  std::vector<bool> done(workflow.calls.size(), false);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < done.size(); ++i) {
      const auto is_done = [&](std::uint32_t p) { return done[p]; };
      if (!done[i] && std::ranges::all_of(producers(workflow, i), is_done))
        done[i] = moved = true;
    }
  }
  if (std::ranges::find(done, false) != done.end())
    examined.refuse("", "calls wait for each other in a circle: "
                          + cycle_text(workflow, done));
}

void check_heads(const Examined& examined) {
  for (const auto& call : examined.workflow.calls)
    if (call.kind == CallKind::inference || call.kind == CallKind::generate)
      check_head(examined.workflow, call,
                 call.kind == CallKind::generate || call.fn == "logprobs"
                     || call.fn == "top_logprobs"
                   ? Head::vocabulary
                   : Head::scalar,
                 examined.places);
}

/// Returns the word that files use.
std::string_view kind_word(CallKind kind) {
  return kind == CallKind::inference ? "infer" : to_string(kind);
}

} // namespace

void check_head(const Workflow& workflow, const Call& call, Head wanted,
                const WorkflowPlaces& places) {
  const bool scalar = wanted == Head::scalar;
  if (workflow.role(call.role).scalar_head == scalar)
    return;
  const auto at = places.find(place_name(call));
  const bool in_file = at != places.end();
  throw ConfigError(
    {.place = in_file ? at->second : Place{},
     .path = in_file
               ? fmt::format("{}.{}", place_name(call), kind_word(call.kind))
               : fmt::format("workflow {}: call {}", workflow.name, call.name),
     .expected
     = fmt::format("a role with{} a scalar head for {}", scalar ? "" : "out",
                   call.kind == CallKind::generate ? "generation" : call.fn),
     .got = call.role,
     .hint = in_file
               ? fmt::format("`scalar_head: {}` in roles.{}", scalar, call.role)
               : fmt::format("role {} with{} `.scalar_head()`", call.role,
                             scalar ? "" : "out")});
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
  });
}

std::string_view to_string(CallKind kind) {
  switch (kind) {
  case CallKind::generate:
    return "generate";
  case CallKind::inference:
    return "inference";
  case CallKind::train:
    return "train";
  case CallKind::function:
    return "function";
  }
  return "?";
}

const std::string& Call::argument(const std::string& key) const {
  const auto found = std::ranges::find(renames, key, &Rename::key);
  return found == renames.end() ? key : found->argument;
}

const Call* Workflow::find_call(std::string_view wanted) const {
  return find_named(calls, wanted);
}

const Role* Workflow::find_role(std::string_view wanted) const {
  return find_named(roles, wanted);
}

const Call& Workflow::call(std::string_view wanted) const {
  const auto* found = find_call(wanted);
  TROUPE_CHECK(found, fmt::format("no call '{}'", wanted));
  return *found;
}

const Role& Workflow::role(std::string_view wanted) const {
  const auto* found = find_role(wanted);
  TROUPE_CHECK(found, fmt::format("no role '{}'", wanted));
  return *found;
}

const Call* Workflow::writer(std::string_view key) const {
  const auto writes
    = [&](const Call& call) { return contains(call.writes, key); };
  const auto found = std::ranges::find_if(calls, writes);
  return found == calls.end() ? nullptr : &*found;
}

bool keeps_groups(const Call& call) {
  return call.fn == "keep_groups";
}

std::uint32_t rounds_of(const Workflow& workflow) {
  std::uint32_t rounds = 1;
  for (const auto& call : workflow.calls)
    rounds = std::max(rounds, call.rows.rounds);
  return rounds;
}

Workflow in_one_round(Workflow workflow) {
  for (auto& call : workflow.calls)
    call.rows.rounds = 1;
  return workflow;
}

Call twin_of(const Workflow& workflow, const Call& call,
             const std::string& prefix) {
  Call twin = call;
  twin.rows.rounds = 1;
  twin.name = prefix + call.name;
  twin.renames.clear();
  const auto rename = [&](std::string& key, bool made) {
    const auto argument = call.argument(key);
    if (made)
      key = prefix + key;
    if (key != argument)
      twin.renames.push_back({key, argument});
  };
  for (auto& key : twin.reads)
    rename(key, workflow.writer(key) != nullptr);
  for (auto& key : twin.writes)
    rename(key, true);
  return twin;
}

std::set<std::string> makers_of(const Workflow& workflow,
                                std::vector<std::string> keys) {
  std::set<std::string> makers;
  while (!keys.empty()) {
    const auto* writer = workflow.writer(keys.back());
    keys.pop_back();
    if (writer != nullptr && makers.insert(writer->name).second)
      keys.insert(keys.end(), writer->reads.begin(), writer->reads.end());
  }
  return makers;
}

std::vector<std::uint32_t> producers(const Workflow& workflow, std::size_t i) {
  std::set<std::uint32_t> found;
  for (const auto& key : workflow.calls[i].reads)
    if (const auto* writer = workflow.writer(key))
      found.insert(static_cast<std::uint32_t>(writer - workflow.calls.data()));
  return {found.begin(), found.end()};
}

void check(const Workflow& workflow, const WorkflowPlaces& places) {
  const Examined examined{workflow, places};
  if (workflow.calls.empty())
    examined.refuse("", "it has no calls");
  check_names(examined, workflow.roles, "role");
  check_names(examined, workflow.calls, "call");
  check_roles(examined);
  check_heads(examined);
  check_followers(examined);
  check_writers(examined);
  check_readers(examined);
  check_cycles(examined);
}

} // namespace troupe::plans
