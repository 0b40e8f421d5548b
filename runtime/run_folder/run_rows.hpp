// The rows of data.train of a run: read and checked before anything starts, and
// kept as RUN/data.index, so that workers and later starts of the run read them
// from there instead of tokenizing the whole file again.
#pragma once

#include "config/model/model_shape.hpp"
#include "config/settings/settings.hpp"
#include "plans/workflow/workflow.hpp"
#include "runtime/run_folder/run_folder.hpp"
#include "runtime/run_folder/run_inputs.hpp"

#include <map>
#include <memory>
#include <string>

namespace troupe::models {
class Dataset;
} // namespace troupe::models

namespace troupe::runtime {

struct RunRows {
  std::shared_ptr<const models::Dataset> data; ///< null: no rows of data.train
  std::string key;                             ///< key of the index
  double seconds = 0;                          ///< duration of the opening
};

/// Opens data.train, by the folder's index if that is of the same file,
/// tokenizer, limits and program. Reports progress if that takes long. Throws
/// ConfigError with file, line and field for a bad row, unless the settings
/// skip it, and for one that is longer than a model's positions. Writes
/// nothing. `inputs` are those of the run.
RunRows open_rows(const Settings& settings, const plans::Workflow& workflow,
                  const std::map<std::string, ModelShape>& shapes,
                  const RunInputs& inputs, const RunFolder& folder);

/// Writes the index unless the folder has it.
void keep_index(const RunRows& rows, const RunFolder& folder);

/// Returns "1000 rows of data.train read in 0.1 s, kept in data.index" for the
/// log.
std::string rows_sentence(const RunRows& rows);

} // namespace troupe::runtime
