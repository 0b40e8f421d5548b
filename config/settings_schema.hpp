// The one table of settings: path, place in `Settings`, type, range, sentence,
// where it applies and which values this version runs. Parsing, printing,
// range checks, `troupe explain` and unknown-key errors all read it. Private to
// config and its tests.
#pragma once

#include "config/settings.hpp"
#include "config/workflow_traits.hpp"
#include "config/yaml_tree.hpp"

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// `plan`: a word, or an inline mapping kept as YAML text.
struct PlanSlot {
  std::string* text;
  bool* is_inline;
};

/// Where a field's value lives.
using Slot
  = std::variant<bool*, int*, std::uint64_t*, float*, double*, std::string*,
                 std::optional<int>*, std::optional<double>*, ClipRatio*,
                 std::array<double, 2>*, std::vector<std::string>*,
                 std::map<std::string, std::string>*,
                 std::map<std::string, double>*, PlanSlot>;

struct Field {
  std::string path; ///< "rollout.n"; of models "models.ROLE.path"
  std::function<Slot(Settings&, const std::string& role)> slot;
  std::string sentence; ///< what it is, with unit and sentinel values

  std::vector<std::string> choices;                    ///< empty: any, or ..
  std::vector<std::string> (*choices_now)() = nullptr; ///< .. what this says
  /// Also a choice, of this program and not of users: no message names it.
  bool (*is_own_choice)(const std::string&) = nullptr;
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false; ///< `least` itself is excluded
  bool below_most = false;
  std::string shape; ///< of texts: "a duration such as 90m"; "": any text
  bool (*fits_shape)(const std::string&) = nullptr;
  bool is_required = false;
  bool is_trained_only = false;         ///< models: roles that train
  bool is_frozen_only = false;          ///< models: roles that do not
  std::string own_section;              ///< of an own program; "": built in
  std::optional<SettingsGroup> group;   ///< whose readers use it; {}: all
  std::string needs_key;                ///< used only if this other setting ...
  std::vector<std::string> needs_value; ///< ... is one of these, or (empty
                                        ///< list) differs from its default
  std::vector<std::string> runs; ///< values this version runs; empty: all

  Field& one_of(std::vector<std::string> values);
  Field& one_of(std::vector<std::string> (*values)());
  Field& or_own(bool (*is_own)(const std::string&));
  Field& at_least(double value);
  Field& above(double value);
  Field& at_most(double value);
  Field& below(double value);
  Field& shaped(std::string text, bool (*fits)(const std::string&));
  Field& required();
  Field& trained_only();
  Field& frozen_only();
  Field& of(SettingsGroup readers);
  Field& needs(std::string key, std::vector<std::string> values = {});
  Field& only_runs(std::vector<std::string> values);
};

struct SettingsSection {
  std::string name; ///< "rollout"; "models.ROLE.optimizer"
  std::string sentence;
};

/// In the order of INTERFACE's block.
const std::vector<SettingsSection>& settings_sections();
const std::vector<Field>& settings_fields();
/// Adds an own program's section, behind the others.
void add_to_settings_table(SettingsSection section, std::vector<Field> fields);
void remove_from_settings_table(const std::string& own_section);
/// Removes all own sections: for tests, which add several programs'.
void forget_own_sections();
// The table's parts, one a source.
std::vector<Field> make_run_fields();
std::vector<Field> make_model_and_data_fields();
std::vector<Field> make_algorithm_fields();
std::vector<Field> make_output_fields();

/// The field of "models.actor.path" and its role ("actor"), or nullptr.
std::pair<const Field*, std::string> find_field(const std::string& path);
/// Whether `path` names a section, at any depth.
bool is_section(const std::string& path);
/// "models.ROLE.path" with the role put in.
std::string path_with_role(const std::string& path, const std::string& role);

/// What `field` takes; empty: any.
std::vector<std::string> choices_of(const Field& field);
/// Whether `words` is empty or has `word`.
bool holds(const std::vector<std::string>& words, const std::string& word);
/// Whether `workflow` reads the setting.
bool field_applies(const Field& field, const std::string& workflow);
/// Whether the section that `path` stands in is used by `workflow`.
bool section_applies(const std::string& path, const std::string& workflow);
/// The workflows that read the setting, or any of a section's ("rollout");
/// verbs' only if there is no other. Empty: all.
std::vector<std::string> readers_of(const Field& field);
std::vector<std::string> readers_of_section(const std::string& name);
/// Whether `workflow` trains `role`.
bool is_trained(const std::string& workflow, const std::string& role);
/// Whether the field of models is for this role of the workflow.
bool is_for_role(const Field& field, const std::string& workflow,
                 const std::string& role);
/// Whether the settings use `role`: no ref without a KL term, no reward model
/// without reward.kind model.
bool uses_role(const Settings& settings, const std::string& role);
/// Whether the field's `needs` holds.
bool needs_hold(const Field& field, const Settings& settings);

/// "a whole number >= 1", "one of a, b or c", ...
std::string expected_text(const Field& field);
/// Reads `node` into the field's slot; throws ConfigError with `path`.
void read_value(const Field& field, Settings& settings, const std::string& role,
                const YamlNode& node, const std::string& path);
/// The field's value as YAML.
YamlNode value_node(const Field& field, const Settings& settings,
                    const std::string& role);
/// The same on one line, as a user would write it.
std::string value_text(const Field& field, const Settings& settings,
                       const std::string& role);
std::string default_text(const Field& field);

/// Everything that needs the whole: required ones, ignored ones, values this
/// version does not run, settings that contradict each other.
void check_settings(const Settings& settings, const Place& whole);

/// "a, b or c".
std::string join_or(const std::vector<std::string>& words);

} // namespace troupe
