// Where the rows of the running steps are: per key, which worker holds which
// samples, and how long each sample is. The master's only knowledge of data;
// pure bookkeeping over ids (invariant I6: one holder until commit).
#pragma once

#include "actors/messages.hpp"
#include "plans/balance.hpp"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

class RowTable {
public:
  RowTable() = default;
  /// `dataset`: what holds the keys that no call makes.
  explicit RowTable(std::uint32_t dataset) : dataset_(dataset) {}

  /// `n` samples a data-set row. Sample s of the step is row s / n.
  void begin(StepId step, const DataBatch& batch, std::uint32_t n);
  bool known(StepId step) const;
  /// Records what a part of a call made. Lengths replace the samples' tokens.
  void produced(StepId step, const RunDone& done);
  /// Holders of `keys` of the samples in `range`; keys never produced come from
  /// the data set.
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
    std::vector<std::uint32_t> tokens; ///< of each sample
    /// key -> holder of each sample
    std::map<std::string, std::vector<std::uint32_t>> holders;
  };
  const Step& at(StepId step) const;

  std::uint32_t dataset_ = dataset_holder;
  std::map<StepId, Step> steps_;
};

/// The part of `sources` that speaks of `samples` (ascending).
std::vector<RowSource> narrow(const std::vector<RowSource>& sources,
                              std::span<const SampleId> samples);

} // namespace troupe::actors
