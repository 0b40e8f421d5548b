#include "models/functions.hpp"

#include "config/error.hpp"
#include "models/group_advantages.hpp"
#include "models/ppo_advantages.hpp"

namespace troupe::models {

void Functions::add(std::string name, Function function) {
  TROUPE_CHECK(!has(name), "function '" + name + "' is there already");
  entries_.emplace_back(std::move(name), std::move(function));
}

bool Functions::has(std::string_view name) const {
  for (const auto& [known, function] : entries_)
    if (known == name)
      return true;
  return false;
}

std::vector<std::string> Functions::names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_)
    names.push_back(entry.first);
  return names;
}

const Function& Functions::find(std::string_view name) const {
  std::string known;
  for (const auto& [entry, function] : entries_) {
    if (entry == name)
      return function;
    known += (known.empty() ? "" : ", ") + entry;
  }
  throw ConfigError({.place = {},
                     .path = "fn",
                     .expected = "a function (" + known + ")",
                     .got = "'" + std::string(name) + "'",
                     .hint = ""});
}

const Functions& functions() {
  static const Functions table = [] {
    Functions built_in;
    built_in.add("ppo_advantages", &ppo_advantages);
    built_in.add("group_advantages", &group_advantages);
    return built_in;
  }();
  return table;
}

FunctionResult run_function(const std::string& fn, const net::Rows& rows,
                            const FunctionContext& context) {
  return functions().find(fn)(rows, context);
}

} // namespace troupe::models
