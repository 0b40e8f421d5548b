// Locations of the rows of the running steps: per key, which worker holds which
// samples, and how long each sample is. The master's only knowledge of data;
// pure bookkeeping over ids (invariant I6: one holder until commit).
#pragma once

#include "actors/protocol/messages.hpp"
#include "plans/workflow/balance.hpp"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

class RowTable {
public:
  RowTable() = default;
  /// `dataset`: the holder of the keys that no call produces.
  explicit RowTable(std::uint32_t dataset) : dataset_(dataset) {}

  /// Adds a step with `n` samples per data-set row: sample s of the step is row
  /// s / n.
  void begin(StepId step, const DataBatch& batch, std::uint32_t n);
  bool known(StepId step) const;
  /// Records what a part of a call produced. Its lengths replace the samples'
  /// tokens.
  void produced(StepId step, const RunDone& done);
  /// Returns the holders of `keys` of the samples in `range`; keys that no call
  /// has produced come from the data set.
  std::vector<RowSource> sources(StepId step, std::span<const std::string> keys,
                                 plans::SampleRange range) const;
  const std::vector<std::uint32_t>& tokens(StepId step) const;
  std::uint32_t num_samples(StepId step) const;
  const DataBatch& batch(StepId step) const;
  void commit(StepId step);

private:
  struct Step {
    DataBatch batch;
    std::vector<std::uint32_t> rows;   ///< data-set row of each sample
    std::vector<std::uint32_t> tokens; ///< per sample
    /// key -> holder per sample
    std::map<std::string, std::vector<std::uint32_t>> holders;
  };
  const Step& at(StepId step) const;

  std::uint32_t dataset_ = dataset_holder;
  std::map<StepId, Step> steps_;
};

/// Returns, for each share, the part of `sources` that covers its samples. No
/// sample is in two shares.
std::vector<std::vector<RowSource>>
narrow(const std::vector<RowSource>& sources,
       const std::vector<std::vector<SampleId>>& shares);

} // namespace troupe::actors
