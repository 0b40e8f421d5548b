#include "actors/worker_base/user_calls.hpp"

#include "config/base/error.hpp"

#include <map>

namespace troupe::actors {

namespace {

std::map<std::string, UserEntry>& user_entries() {
  static std::map<std::string, UserEntry> entries;
  return entries;
}

/// Compares what a workflow file can say.
bool is_same(const UserEntry& a, const UserEntry& b) {
  const auto metrics = [](const UserEntry& entry) {
    std::vector<std::pair<std::string, KeyInfo>> all;
    for (const auto& metric : entry.metrics)
      all.emplace_back(metric.name, metric.key);
    return all;
  };
  return a.call.name == b.call.name && a.call.kind == b.call.kind
         && a.call.reads == b.call.reads && a.call.writes == b.call.writes
         && a.call.carried_out == b.call.carried_out
         && a.python.has_value() == b.python.has_value()
         && (!a.python || a.python->processes == b.python->processes)
         && metrics(a) == metrics(b);
}

} // namespace

void add_user_entry(const std::string& fn, UserEntry entry) {
  const bool added = user_entries().emplace(fn, std::move(entry)).second;
  TROUPE_CHECK(added, "function '" + fn + "' is there already");
}

void set_file_entry(const std::string& fn, UserEntry entry) {
  const auto at = user_entries().find(fn);
  if (at == user_entries().end())
    return add_user_entry(fn, std::move(entry));
  TROUPE_CHECK(at->second.is_of_file, "function '" + fn + "' is the program's");
  if (!is_same(at->second, entry))
    at->second = std::move(entry);
}

const UserEntry* find_user_entry(const std::string& fn) {
  const auto at = user_entries().find(fn);
  return at == user_entries().end() ? nullptr : &at->second;
}

std::vector<std::string> user_names() {
  std::vector<std::string> names;
  for (const auto& [fn, entry] : user_entries()) {
    if (entry.is_of_file)
      continue;
    names.push_back("function " + fn);
    if (!entry.actor.name.empty())
      names.push_back("actor " + entry.actor.name);
  }
  return names;
}

} // namespace troupe::actors
