#include "actors/checkpoint/snapshot_record.hpp"

#include "config/base/atomic_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <system_error>

namespace troupe::actors {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path snapshot_record_file(const fs::path& run_folder) {
  return run_folder / "snapshot" / "record.json";
}

fs::path snapshot_rows_file(const fs::path& run_folder, const SnapshotKey& key,
                            WorkerId holder) {
  return run_folder / "snapshot"
         / fmt::format("rows_{}_{:02}.safetensors", key.slot, holder.value);
}

namespace {

json record_json(const SnapshotRecord& record) {
  return {{"id", record.key.id},
          {"slot", record.key.slot},
          {"plan", record.plan},
          {"state", json_of(record.state)}};
}

/// Returns the file's content; null if there is none that can be read.
json read_record_json(const fs::path& run_folder) {
  std::ifstream file{snapshot_record_file(run_folder)};
  return file ? json::parse(file, nullptr, /*allow_exceptions=*/false) : json{};
}

} // namespace

SnapshotRecordText text_of(const SnapshotRecord& record,
                           const std::optional<SnapshotRecord>& before) {
  json value = record_json(record);
  if (before)
    value["before"] = record_json(*before);
  return {.id = record.key.id, .text = value.dump(2)};
}

void write_snapshot_record(const fs::path& run_folder,
                           const SnapshotRecordText& record) {
  replace_file(snapshot_record_file(run_folder), record.text);
}

std::optional<SnapshotRecord> read_snapshot_record(const fs::path& run_folder) {
  const json value = read_record_json(run_folder);
  try {
    SnapshotRecord record;
    record.key.id = value.at("id");
    record.key.slot = value.at("slot");
    record.plan = value.at("plan");
    record.state = checkpoint_state_of(value.at("state"));
    return record;
  } catch (const json::exception&) { // of another version
    return std::nullopt;
  }
}

void forget_newest_snapshot(const fs::path& run_folder) {
  const json value = read_record_json(run_folder);
  if (!value.is_object() || !value.contains("before"))
    return forget_snapshot(run_folder);
  try {
    write_snapshot_record(run_folder, {.text = value["before"].dump(2)});
  } catch (const FailureError&) { // a full disk: the checkpoint remains
    forget_snapshot(run_folder);
  }
}

void forget_snapshot(const fs::path& run_folder) {
  std::error_code ignored; // a folder that stays is not read without its record
  fs::remove(snapshot_record_file(run_folder), ignored);
  fs::remove_all(run_folder / "snapshot", ignored);
}

} // namespace troupe::actors
