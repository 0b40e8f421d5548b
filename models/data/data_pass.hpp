// One pass over all rows of a data file: each is parsed and tokenized by one of
// several threads, and the results are joined in file order, so that index,
// counts and the first mistake do not depend on the threads.
#pragma once

#include "models/data/dataset.hpp"
#include "models/data/sample_reader.hpp"

namespace troupe::models::internal {

/// Reads all rows. Throws ConfigError for the first row that the options do not
/// allow.
DataIndex read_all_rows(const JsonLines& lines, const SampleReader& reader,
                        const DatasetOptions& options,
                        const DatasetOpening& opening);

} // namespace troupe::models::internal
