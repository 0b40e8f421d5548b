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
  /// s / n. It may generate in `rounds`, of equal numbers of rows.
  void begin(StepId step, const DataBatch& batch, std::uint32_t n,
             std::uint32_t rounds = 1);
  bool known(StepId step) const;
  /// Records what a part of a call produced. Its lengths replace the samples'
  /// tokens.
  void produced(StepId step, const RunDone& done);
  /// Goes on with these samples of a round, ascending.
  void keep(StepId step, std::span<const SampleId> samples);
  /// Goes on with samples that were left out too, in their order, until there
  /// are as many as a round has.
  void fill_up(StepId step);
  /// Returns whether as many samples are kept as a round has.
  bool is_full(StepId step) const;
  /// Returns the kept samples, ascending; empty in a step of one round, which
  /// keeps all.
  std::vector<SampleId> kept(StepId step) const;

  /// Returns the holders of `keys` of the samples in `range`, which counts the
  /// kept ones if `of_kept`; keys that no call has produced come from the data
  /// set.
  std::vector<RowSource> sources(StepId step, std::span<const std::string> keys,
                                 plans::SampleRange range,
                                 bool of_kept = false) const;
  const std::vector<std::uint32_t>& tokens(StepId step) const;
  /// Returns the tokens of the samples that the step trains on, as far as they
  /// are known: those of the first round at first.
  std::vector<std::uint32_t> trained_tokens(StepId step) const;
  /// Returns the number of samples of a round: of those that are trained on.
  std::uint32_t num_samples(StepId step) const;
  const DataBatch& batch(StepId step) const;
  void commit(StepId step);

private:
  struct Step {
    DataBatch batch;
    std::vector<std::uint32_t> rows;   ///< data-set row of each sample
    std::vector<std::uint32_t> tokens; ///< per sample
    std::uint32_t rounds = 1;
    std::vector<std::uint32_t> kept; ///< samples; empty in one round
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
