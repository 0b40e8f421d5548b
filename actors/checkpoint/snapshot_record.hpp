// The master's note of the last snapshot, a small file of the run folder: which
// slot of the hosts' memory it is in (net/keeper), by which plan, and the parts
// of a checkpoint besides planes. Written after all devices have copied theirs,
// so it never names half a snapshot.
#pragma once

#include "actors/checkpoint/checkpoint_files.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace troupe::actors {

struct SnapshotRecord {
  SnapshotKey key;
  std::string plan; ///< a snapshot fits no other one
  CheckpointState state;
};

/// Returns snapshot/record.json of a run folder.
std::filesystem::path
snapshot_record_file(const std::filesystem::path& run_folder);
/// Returns the file beside it with the rows of calls in flight that `holder`
/// had.
std::filesystem::path
snapshot_rows_file(const std::filesystem::path& run_folder,
                   const SnapshotKey& key, WorkerId holder);

/// Returns the record as its file has it, together with the one `before`, which
/// is in the other slot.
SnapshotRecordText text_of(const SnapshotRecord& record,
                           const std::optional<SnapshotRecord>& before);
/// Replaces the record. Throws FailureError (io).
void write_snapshot_record(const std::filesystem::path& run_folder,
                           const SnapshotRecordText& record);
/// Returns the record; nothing if there is none or it cannot be read, as
/// snapshots may be lost at any time.
std::optional<SnapshotRecord>
read_snapshot_record(const std::filesystem::path& run_folder);
/// Replaces the record by the one before it, or removes it: the memory that it
/// names is lost, at least in part.
void forget_newest_snapshot(const std::filesystem::path& run_folder);
/// Removes the record: the memory that it names is lost, or not needed.
void forget_snapshot(const std::filesystem::path& run_folder);

} // namespace troupe::actors
