#include "actors/worker_base/user_calls.hpp"

#include "config/base/error.hpp"

#include <map>

namespace troupe::actors {

namespace {

std::map<std::string, UserEntry>& user_entries() {
  static std::map<std::string, UserEntry> entries;
  return entries;
}

} // namespace

void add_user_entry(const std::string& fn, UserEntry entry) {
  const bool added = user_entries().emplace(fn, std::move(entry)).second;
  TROUPE_CHECK(added, "function '" + fn + "' is there already");
}

const UserEntry* find_user_entry(const std::string& fn) {
  const auto at = user_entries().find(fn);
  return at == user_entries().end() ? nullptr : &at->second;
}

std::vector<std::string> user_names() {
  std::vector<std::string> names;
  for (const auto& [fn, entry] : user_entries()) {
    names.push_back("function " + fn);
    if (!entry.actor.name.empty())
      names.push_back("actor " + entry.actor.name);
  }
  return names;
}

} // namespace troupe::actors
