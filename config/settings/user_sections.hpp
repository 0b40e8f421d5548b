// Sections of settings that a user-defined program adds to the table (its
// user's side is troupe/section.hpp). They are added before any settings are
// read; each Settings then holds their values from the start.
#pragma once

#include <any>
#include <map>
#include <string>

namespace troupe {

namespace detail {
struct UserSection;
} // namespace detail

/// User-defined structs by section name.
using UserSettings = std::map<std::string, std::any>;

/// Adds a section. Throws ConfigError if the name or a field is taken.
void add_user_section(const detail::UserSection& section);
/// Returns the defaults of all added sections.
const UserSettings& user_settings_defaults();

} // namespace troupe
