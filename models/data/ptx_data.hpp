// The rows of data.ptx, which the actor is trained on beside its responses: how
// they are read, and which of them each step has. As those of data.train a pure
// function of seed and step, so a resumed run goes on with the same ones (I8).
#pragma once

#include "models/data/data_order.hpp"
#include "models/data/dataset.hpp"

#include <cstdint>
#include <vector>

namespace troupe::models {

/// Returns the options of data.ptx: rows as for sft, as long as a prompt with
/// its response (as DeepSpeed-Chat cuts its texts).
DatasetOptions ptx_options(const Settings& settings);

/// Opens data.ptx. Throws ConfigError as Dataset::open does.
Dataset open_ptx(const Settings& settings, const Tokenizer& tokenizer,
                 const DatasetOpening& opening = {});

/// Returns the order of data.ptx with `num_rows` usable rows.
DataOrder ptx_order(const Settings& settings, std::uint32_t num_rows);

/// The lengths of the rows, without the rows: what metrics count of them.
class PtxTokens {
public:
  PtxTokens(const Settings& settings, const Dataset& rows);
  /// `tokens`: of each row.
  PtxTokens(const Settings& settings, std::vector<std::uint32_t> tokens);

  /// Returns the tokens of each row that a step (from 0) trains on. Not
  /// thread-safe.
  std::vector<std::uint32_t> of_step(std::uint64_t step) const;

private:
  std::vector<std::uint32_t> tokens_; ///< by row
  mutable DataOrder order_;           ///< caches an epoch
};

} // namespace troupe::models
