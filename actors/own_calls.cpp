#include "actors/own_calls.hpp"

#include "config/error.hpp"

#include <map>

namespace troupe::actors {

namespace {

std::map<std::string, OwnEntry>& own_entries() {
  static std::map<std::string, OwnEntry> entries;
  return entries;
}

} // namespace

void add_own_entry(const std::string& fn, OwnEntry entry) {
  const bool added = own_entries().emplace(fn, std::move(entry)).second;
  TROUPE_CHECK(added, "function '" + fn + "' is there already");
}

const OwnEntry* find_own_entry(const std::string& fn) {
  const auto at = own_entries().find(fn);
  return at == own_entries().end() ? nullptr : &at->second;
}

std::vector<std::string> own_names() {
  std::vector<std::string> names;
  for (const auto& [fn, entry] : own_entries()) {
    names.push_back("function " + fn);
    if (!entry.actor.name.empty())
      names.push_back("actor " + entry.actor.name);
  }
  return names;
}

} // namespace troupe::actors
