// Sections of settings that an own program adds to the table
// (troupe/section.hpp has the user's side). Added before any settings are read;
// each Settings then holds their values from the start.
#pragma once

#include <any>
#include <map>
#include <string>

namespace troupe {

namespace detail {
struct OwnSection;
} // namespace detail

/// Own structs by section name.
using OwnSettings = std::map<std::string, std::any>;

/// Throws ConfigError where the name or a field is taken.
void add_own_section(const detail::OwnSection& section);
/// The defaults of all that were added.
const OwnSettings& own_settings_defaults();

} // namespace troupe
