// Reads the files of another RLHF system: kinds by their names and contents,
// base files that they name, overrides from our command line.
#pragma once

#include "plans/foreign/imported.hpp"
#include "plans/foreign/recipe.hpp"
#include "runtime/planner/command_options.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe::runtime {

struct ImportWords {
  std::vector<std::string> words;         ///< files, then key=value
  std::string from;                       ///< empty: found out
  std::vector<std::string> model_configs; ///< FOLDER or MODEL=FOLDER
};
/// Adds the files, --from and --model-config; returns the files' option.
CLI::Option* add_import_words(CLI::App& command, ImportWords& words);

/// Returns whether the words are settings of ours: a run folder, or a file that
/// says `workflow` at its top.
bool is_ours(const ImportWords& words);

/// Reads files and overrides as one list of values. A word KEY=VALUE whose KEY
/// is all capitals sets a variable of the scripts.
plans::ForeignConfig read_foreign(const std::vector<std::string>& words);

/// Returns the recipe of the words.
plans::Recipe read_recipe(const ImportWords& words);

/// Returns the models' shapes and folders, for devices with so much memory.
/// Throws ConfigError for a model that neither the table nor --model-config
/// has.
plans::ImportFacts import_facts(const plans::Recipe& recipe,
                                const ImportWords& words, double device_bytes);

} // namespace troupe::runtime
