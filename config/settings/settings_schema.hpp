// The single table of settings: path, location in `Settings`, type, range,
// sentence, where it applies and which values this version supports. Parsing,
// printing, range checks, `troupe explain` and errors about unknown keys all
// read it. Private to config and its tests.
#pragma once

#include "config/settings/settings.hpp"
#include "config/settings/workflow_traits.hpp"
#include "config/yaml/yaml_tree.hpp"

#include <functional>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Slot of `plan`: a word, or an inline mapping kept as YAML text.
struct PlanSlot {
  std::string* text;
  bool* is_inline;
};

/// Pointer to a field's value; that of data.train is the files of `data`.
using Slot
  = std::variant<bool*, int*, std::uint64_t*, float*, double*, std::string*,
                 std::optional<int>*, std::optional<double>*, ClipRatio*,
                 std::array<double, 2>*, std::vector<std::string>*,
                 std::map<std::string, std::string>*,
                 std::map<std::string, double>*, DataSettings*, PlanSlot>;

/// Numbers that a field accepts.
struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false; ///< excludes `least` itself
  bool below_most = false;
};

struct Field {
  std::string path; ///< "rollout.n"; models: "models.ROLE.path"
  std::function<Slot(Settings&, const std::string& role)> slot;
  std::string sentence; ///< meaning, with unit and special values

  std::vector<std::string> choices; ///< empty: any, or see choices_now
  std::vector<std::string> (*choices_now)() = nullptr; ///< computed
  /// Accepts internal choices that are not for users: messages do not name
  /// them.
  bool (*is_own_choice)(const std::string&) = nullptr;
  NumberRange range;
  std::string shape; ///< texts: "a duration such as 90m"; "": any
  bool (*fits_shape)(const std::string&) = nullptr;
  bool is_required = false;
  bool is_secret = false;            ///< mappings: printed without values
  bool is_trained_only = false;      ///< models: only trained roles
  bool is_frozen_only = false;       ///< models: only frozen roles
  std::string user_section;          ///< user-defined section; "": built in
  std::vector<SettingsGroup> groups; ///< whose readers use it; empty: all
  std::string needs_key; ///< setting that decides whether it is used
  std::vector<std::string> needs_value; ///< values with which it is; empty: any
                                        ///< but the default

  Field& one_of(std::vector<std::string> values);
  Field& one_of(std::vector<std::string> (*values)());
  Field& or_own(bool (*is_own)(const std::string&));
  Field& at_least(double value);
  Field& above(double value);
  Field& at_most(double value);
  Field& below(double value);
  Field& shaped(std::string text, bool (*fits)(const std::string&));
  Field& required();
  Field& secret();
  Field& trained_only();
  Field& frozen_only();
  Field& of(SettingsGroup readers);
  Field& of(std::initializer_list<SettingsGroup> readers);
  Field& needs(std::string key, std::vector<std::string> values = {});
};

struct SettingsSection {
  std::string name; ///< "rollout"; "models.ROLE.optimizer"
  std::string sentence;
};

/// Returns the sections in the order in which settings are documented.
const std::vector<SettingsSection>& settings_sections();
const std::vector<Field>& settings_fields();
/// Adds a user-defined program's section after the others.
void add_to_settings_table(SettingsSection section, std::vector<Field> fields);
void remove_from_settings_table(const std::string& user_section);
/// Removes all user-defined sections: for tests that add those of several
/// programs.
void forget_user_sections();
// Returns a part of the table; each has its own source.
std::vector<Field> make_run_fields();
std::vector<Field> make_model_and_data_fields();
std::vector<Field> make_algorithm_fields();
std::vector<Field> make_agent_fields();
std::vector<Field> make_output_fields();

/// Returns the field of "models.actor.path" and its role ("actor"), or nullptr.
std::pair<const Field*, std::string> find_field(const std::string& path);
/// Returns true if `path` names a section, at any depth.
bool is_section(const std::string& path);
/// Returns "models.ROLE.path" with the role's name inserted.
std::string path_with_role(const std::string& path, const std::string& role);

/// Returns the values that `field` accepts; empty: any.
std::vector<std::string> choices_of(const Field& field);
/// Returns true if `words` is empty or contains `word`.
bool holds(const std::vector<std::string>& words, const std::string& word);
/// Returns true if `workflow` reads the setting.
bool field_applies(const Field& field, const std::string& workflow);
/// Returns true if `workflow` uses the section that contains `path`.
bool section_applies(const std::string& path, const std::string& workflow);
/// Returns the workflows that read the setting, or any setting of a section
/// ("rollout"); those of commands only if there are no others. Empty: all.
std::vector<std::string> readers_of(const Field& field);
std::vector<std::string> readers_of_section(const std::string& name);
/// Returns true if `workflow` trains `role`.
bool is_trained(const std::string& workflow, const std::string& role);
/// Returns true if the field of models applies to this role of the workflow.
bool is_for_role(const Field& field, const std::string& workflow,
                 const std::string& role);
/// Returns true if the settings use `role`: no ref without a KL term, no reward
/// model without reward.kind model.
bool uses_role(const Settings& settings, const std::string& role);
/// Returns true if the condition `needs` of the field holds.
bool needs_hold(const Field& field, const Settings& settings);

/// Returns "a whole number >= 1", "one of a, b or c", ...
std::string expected_text(const Field& field);
/// Reads `node` into the field's slot. Throws ConfigError with `path`.
void read_value(const Field& field, Settings& settings, const std::string& role,
                const YamlNode& node, const std::string& path);
/// Returns the field's value as YAML.
YamlNode value_node(const Field& field, const Settings& settings,
                    const std::string& role);
/// Returns the same on one line, as a user would write it.
std::string value_text(const Field& field, const Settings& settings,
                       const std::string& role);
std::string default_text(const Field& field);

/// Checks what depends on all settings: required ones, ignored ones,
/// unsupported values, contradictions.
void check_settings(const Settings& settings, const Place& whole);

/// Returns "a, b or c".
std::string join_or(const std::vector<std::string>& words);

} // namespace troupe
