// --fields, --chat: how the verbs that read rows find prompts and answers in
// them, as `data.fields` and `data.chat` say it for a training.
#pragma once

#include "config/settings.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
}
namespace troupe::models {
struct DatasetOptions;
}

namespace troupe::runtime {

struct RowOptions {
  /// Each NAME=COLUMN, NAME=TEMPLATE, or a mapping of such.
  std::vector<std::string> fields;
  std::string chat = "auto"; ///< auto | true | false
};
void add_row_options(CLI::App& verb, RowOptions& options);

/// Settings of the rows in `file` for workflow `verb`, without a limit of
/// tokens. ConfigError for --fields that are no mapping of names to texts.
Settings row_settings(const std::string& verb, const std::string& file,
                      const RowOptions& options);
/// What opens them; a row without a column that is needed leads to --fields.
models::DatasetOptions row_dataset_options(const Settings& settings);

} // namespace troupe::runtime
