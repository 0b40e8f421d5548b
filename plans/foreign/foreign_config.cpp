#include "plans/foreign/foreign_config.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::plans {

const ForeignValue* ForeignConfig::find(std::string_view key) const {
  for (auto value = values.rbegin(); value != values.rend(); ++value)
    if (value->key == key)
      return value->value == "null" || value->value == "None" ? nullptr
                                                              : &*value;
  return nullptr;
}

void ForeignConfig::append(ForeignConfig other) {
  std::ranges::move(other.values, std::back_inserter(values));
  std::ranges::move(other.notes, std::back_inserter(notes));
  std::ranges::move(other.programs, std::back_inserter(programs));
}

} // namespace troupe::plans
