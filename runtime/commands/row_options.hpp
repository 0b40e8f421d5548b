// --fields, --chat: how commands that read rows find prompts and responses in
// them, like `data.fields` and `data.chat` of a training.
#pragma once

#include "config/settings/settings.hpp"

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
  /// Each is NAME=COLUMN, NAME=TEMPLATE, or a mapping of such.
  std::vector<std::string> fields;
  std::string chat = "auto"; ///< auto | true | false
};
void add_row_options(CLI::App& command, RowOptions& options);

/// Returns settings of the rows in `file` for command `command`, without a
/// limit of tokens. Throws ConfigError for --fields that are no mapping of
/// names to texts.
Settings row_settings(const std::string& command, const std::string& file,
                      const RowOptions& options);
/// Returns the options to open them; the error for a row without a required
/// column refers to --fields.
models::DatasetOptions row_dataset_options(const Settings& settings);

} // namespace troupe::runtime
