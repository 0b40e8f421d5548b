// The rows of data.train, eval.data and run.replay on a worker, the order in
// which steps read them, and the tokenizer. Each is opened at its first use, on
// the job thread that needs it: functions may need none, and reading may take
// minutes. Thread-safe.
#pragma once

#include "actors/worker_base/run_description.hpp"
#include "models/data/data_order.hpp"
#include "models/data/dataset.hpp"
#include "models/records/rollout_replay.hpp"
#include "models/text/tokenizer.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class WorkerData {
public:
  /// `run` outlives this object and is filled before the first use.
  explicit WorkerData(const RunDescription& run) : run_(run) {}
  WorkerData(const WorkerData&) = delete;
  WorkerData& operator=(const WorkerData&) = delete;

  /// Returns the data set: by the run's index, else by a pass over all rows,
  /// which counts as progress.
  const models::Dataset& dataset();
  /// Returns the rows of eval.data, likewise.
  const models::Dataset& evaluation();
  /// Returns the rows of data.ptx, likewise, and those that a step trains on.
  const models::Dataset& ptx();
  std::vector<std::uint32_t> ptx_rows_of(StepId step);
  /// Returns the recorded responses of run.replay; nullptr if it is not set.
  const models::RolloutReplay* replay();
  /// Returns the rows of the data file that a call reads in a step, in the
  /// order of its samples: row i / samples_per_row is that of sample i.
  std::vector<std::uint32_t> rows_of(const plans::Call& call, StepId step);
  std::uint32_t row_of(const plans::Call& call, StepId step, SampleId sample);
  /// Returns the tokenizer for the texts of samples.
  const models::Tokenizer& tokenizer();
  /// Returns "reads data.train, row 5120 of 1000000" during a pass, else "".
  std::string reading() const;
  /// Returns a counter that grows during a pass.
  std::uint64_t progress() const {
    return progress_;
  }

private:
  Settings settings_here() const;
  models::OnRows counts_rows(const char* setting);
  void set_reading(std::string text);

  /// A value that the first who needs it opens.
  template <class T>
  struct Opened {
    std::once_flag opened;
    std::optional<T> value;
  };

  const RunDescription& run_;
  std::atomic<std::uint64_t> progress_ = 0;
  mutable std::mutex reading_mutex_;
  std::string reading_; ///< guarded by reading_mutex_
  Opened<models::Dataset> dataset_;
  Opened<models::Dataset> evaluation_;
  Opened<models::Dataset> ptx_;
  Opened<models::RolloutReplay> replay_;
  std::mutex order_mutex_;
  std::optional<models::DataOrder> order_;     ///< guarded by order_mutex_
  std::optional<models::DataOrder> ptx_order_; ///< likewise
  Opened<models::Tokenizer> tokenizer_;
};

/// Opens the rows of `data.train`, tokenized for the workflow's first role.
models::Dataset open_dataset(const Settings& settings,
                             const plans::Workflow& workflow,
                             const models::DatasetOpening& opening = {});

/// Opens the rows of `eval.data`, by the same tokenizer.
models::Dataset open_evaluation(const Settings& settings,
                                const plans::Workflow& workflow,
                                const models::DatasetOpening& opening = {});

} // namespace troupe::actors
