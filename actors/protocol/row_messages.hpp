// Messages about rows that outlive their step: a checkpoint keeps those of
// steps that are unfinished, a resumed run loads them again.
#pragma once

#include "actors/protocol/message_parts.hpp"

namespace troupe::actors {

/// Rows that a worker holds.
struct RowSet {
  StepId step;
  std::vector<std::string> keys;
  std::vector<SampleId> samples;
};
TROUPE_INSPECT(RowSet, x.step, x.keys, x.samples)

/// Keeps these rows, also after their step, until `write`.
struct CopyRowsOrder {
  std::vector<RowSet> sets;
};
TROUPE_INSPECT(CopyRowsOrder, x.sets)

/// Writes the rows that were kept.
struct WriteRowsOrder {
  std::string file;
};
TROUPE_INSPECT(WriteRowsOrder, x.file)

/// Loads the rows of these files, as if they had been produced here.
struct LoadRowsOrder {
  std::vector<std::string> files;
};
TROUPE_INSPECT(LoadRowsOrder, x.files)

} // namespace troupe::actors
