// One pass over all rows of a data file: each is parsed and tokenized by one of
// several threads, and what they find is joined in the order of the file, so
// that index, counts and the first mistake do not depend on the threads.
#pragma once

#include "models/dataset.hpp"
#include "models/internal/sample_reader.hpp"

namespace troupe::models::internal {

/// Throws ConfigError for the first row that the options do not allow.
DataIndex read_all_rows(const JsonLines& lines, const SampleReader& reader,
                        const DatasetOptions& options, const OnRows& on_rows);

} // namespace troupe::models::internal
