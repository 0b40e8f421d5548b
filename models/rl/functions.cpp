#include "models/rl/functions.hpp"

#include "config/base/error.hpp"
#include "models/rl/group_advantages.hpp"
#include "models/rl/keep_groups.hpp"
#include "models/rl/kto_functions.hpp"
#include "models/rl/ppo_advantages.hpp"
#include "models/rl/response_lengths.hpp"

#include <algorithm>

namespace troupe::models {

void Functions::add(FunctionEntry entry) {
  TROUPE_CHECK(!has(entry.name),
               "function '" + entry.name + "' is there already");
  entries_.push_back(std::move(entry));
}

bool Functions::has(std::string_view name) const {
  return std::ranges::find(entries_, name, &FunctionEntry::name)
         != entries_.end();
}

std::vector<std::string> Functions::names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_)
    names.push_back(entry.name);
  return names;
}

const FunctionEntry& Functions::find(std::string_view name) const {
  std::string known;
  for (const auto& entry : entries_) {
    if (entry.name == name)
      return entry;
    known += (known.empty() ? "" : ", ") + entry.name;
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
    built_in.add(ppo_advantages_entry());
    built_in.add(group_advantages_entry());
    built_in.add(response_lengths_entry());
    built_in.add(keep_groups_entry());
    built_in.add(kto_mismatch_entry());
    built_in.add(kto_kl_entry());
    return built_in;
  }();
  return table;
}

FunctionResult run_function(const std::string& fn, const net::Rows& rows,
                            const FunctionContext& context) {
  return functions().find(fn).function(rows, context);
}

} // namespace troupe::models
