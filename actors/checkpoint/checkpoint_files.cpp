#include "actors/checkpoint/checkpoint_files.hpp"

#include "config/base/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <ranges>

namespace troupe::actors {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int manifest_version = 1;

[[noreturn]] void fail_io(const fs::path& path, const std::string& what) {
  throw FailureError{{.code = Errc::io,
                      .who = "checkpoint",
                      .what = fmt::format("{}: {}", path.string(), what),
                      .cause = ""}};
}

void sync_path(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY);
  if (file < 0)
    fail_io(path, std::strerror(errno));
  const int result = fsync(file);
  const int error = errno;
  close(file);
  if (result != 0)
    fail_io(path, std::strerror(error));
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream file{path, std::ios::binary};
  file << text;
  file.close();
  if (!file)
    fail_io(path, fmt::format("cannot write ({})", std::strerror(errno)));
  sync_path(path);
}

/// Returns the checksum that the writer of a file reported; of one that the
/// master wrote itself, that of the file.
std::uint32_t crc32_of(const fs::path& path,
                       const std::vector<FileWritten>& written) {
  const auto own
    = std::ranges::find(written, path.string(), &FileWritten::path);
  if (own == written.end())
    return checksum_of(path);
  if (fs::file_size(path) != own->bytes)
    fail_io(path, fmt::format("has {} bytes, of {} that were written",
                              fs::file_size(path), own->bytes));
  return own->crc32;
}

json manifest_of(const fs::path& folder,
                 const std::vector<FileWritten>& written) {
  json files = json::object();
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (!entry.is_regular_file())
      continue;
    sync_path(entry.path());
    files[entry.path().lexically_relative(folder).string()] = {
      {"bytes", entry.file_size()}, {"crc32", crc32_of(entry.path(), written)}};
  }
  return {{"format", manifest_version}, {"files", files}};
}

/// Returns the complete checkpoints by step. Other folders beside them are the
/// user's.
std::vector<fs::path> complete_checkpoints(const fs::path& run_folder) {
  std::map<StepId, fs::path> found;
  const fs::path folder = run_folder / "checkpoints";
  if (!fs::is_directory(folder))
    return {};
  for (const auto& entry : fs::directory_iterator{folder}) {
    const auto step = step_of_checkpoint(entry.path().filename().string());
    if (step && fs::exists(entry.path() / "manifest.json"))
      found[*step] = entry.path();
  }
  const auto paths = std::views::values(found);
  return {paths.begin(), paths.end()};
}

/// Returns the name that a link of the run folder points at; empty: no link.
fs::path linked_name(const fs::path& run_folder, const char* link) {
  std::error_code ignored;
  return fs::read_symlink(run_folder / link, ignored).filename();
}

/// Removes all but the newest `keep` (0: keeps all), `written` and the best
/// one.
void remove_old(const fs::path& run_folder, const fs::path& written,
                std::uint32_t keep) {
  const auto all = complete_checkpoints(run_folder);
  const auto best = linked_name(run_folder, best_link);
  for (std::size_t i = 0; keep > 0 && i + keep < all.size(); ++i)
    if (all[i].filename() != best && all[i].filename() != written.filename())
      fs::remove_all(all[i]);
}

constexpr const char* unfinished_prefix = ".tmp-";

/// Removes what killed saves left, of any step and attempt: there is one save
/// at a time.
void remove_unfinished(const fs::path& folder) {
  if (!fs::is_directory(folder))
    return;
  for (const auto& entry : fs::directory_iterator{folder})
    if (entry.path().filename().string().starts_with(unfinished_prefix))
      fs::remove_all(entry.path());
}

/// Syncs the lines of the steps that a checkpoint makes final.
void sync_lines(const fs::path& run_folder) {
  for (const char* name : {"metrics.jsonl", "samples.jsonl"})
    if (fs::exists(run_folder / name))
      sync_path(run_folder / name);
}

[[noreturn]] void damaged(const fs::path& path, const std::string& expected,
                          const std::string& got) {
  throw ConfigError({.place = {path.string(), 0},
                     .path = "",
                     .expected = expected,
                     .got = got + ": the checkpoint is damaged",
                     .hint = "removing its step_ folder: the run then "
                             "continues from the checkpoint before"});
}

json read_json(const fs::path& path) {
  std::ifstream file{path};
  json value = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded() || !value.is_object())
    damaged(path, "a JSON object", "something else");
  return value;
}

[[noreturn]] void refuse_checkpoint(const fs::path& path,
                                    const json::exception& error) {
  damaged(path, "a checkpoint's JSON", error.what());
}

void check_files(const fs::path& folder, const json& manifest) {
  for (const auto& [name, entry] : manifest.at("files").items()) {
    const fs::path path = folder / name;
    if (!fs::exists(path) || fs::file_size(path) != entry.at("bytes"))
      damaged(path, "the size that the manifest says",
              "another one, or no file");
    if (checksum_of(path) != entry.at("crc32"))
      damaged(path, "the checksum that the manifest says", "another one");
  }
}

} // namespace

/// Writes doubles as bit patterns: carried values must be restored bit for bit
/// (I8).
json json_of(const CheckpointState& state) {
  json carried = json::object();
  for (const auto& [name, value] : state.carried)
    carried[name] = std::bit_cast<std::uint64_t>(value);
  json in_flight = json::array();
  for (const auto& call : state.in_flight)
    in_flight.push_back(json_of(call));
  return {{"next_step", state.next_step.value},
          {"versions", state.versions},
          {"carried_bits", carried},
          {"early_calls", in_flight},
          {"run_id", state.run_id}};
}

CheckpointState checkpoint_state_of(const json& value) {
  CheckpointState state;
  state.next_step = StepId{value.at("next_step").get<std::uint32_t>()};
  state.versions = value.at("versions");
  for (const auto& [name, bits] : value.at("carried_bits").items())
    state.carried[name] = std::bit_cast<double>(bits.get<std::uint64_t>());
  for (const auto& call : value.at("early_calls"))
    state.in_flight.push_back(call_in_flight_of(call));
  state.run_id = value.at("run_id");
  return state;
}

std::uint32_t checksum_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  std::vector<char> block(std::size_t{1} << 20);
  auto sum = crc32_z(0, nullptr, 0);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    sum = crc32_z(sum, reinterpret_cast<const Bytef*>(block.data()),
                  static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad())
    fail_io(path, "cannot read");
  return static_cast<std::uint32_t>(sum);
}

void point_link(const fs::path& run_folder, const char* link,
                const std::string& name) {
  try {
    const fs::path fresh = run_folder / fmt::format(".{}.tmp", link);
    fs::remove(fresh);
    fs::create_directory_symlink(fs::path{"checkpoints"} / name, fresh);
    fs::rename(fresh, run_folder / link);
  } catch (const fs::filesystem_error& error) {
    fail_io(error.path1(), error.code().message());
  }
}

bool has_checkpoint(const fs::path& run_folder, StepId next_step) {
  std::error_code ignored; // a path that cannot be examined counts as absent
  return fs::exists(run_folder / "checkpoints" / checkpoint_name(next_step)
                      / "manifest.json",
                    ignored);
}

fs::path begin_checkpoint(const fs::path& run_folder, StepId next_step,
                          Incarnation attempt) {
  try {
    const fs::path folder = run_folder / "checkpoints";
    remove_unfinished(folder);
    const fs::path temporary
      = folder
        / fmt::format("{}{}.a{:02}", unfinished_prefix,
                      checkpoint_name(next_step), attempt.value);
    fs::create_directories(temporary / "state");
    return temporary;
  } catch (const fs::filesystem_error& error) {
    fail_io(error.path1(), error.code().message());
  }
}

fs::path commit_checkpoint(const fs::path& temporary,
                           const CheckpointState& state, std::uint32_t keep,
                           const std::vector<FileWritten>& written) {
  try {
    write_text(temporary / "state" / "run.json", json_of(state).dump(2));
    write_text(temporary / "manifest.json",
               manifest_of(temporary, written).dump(2));
    const fs::path run_folder = temporary.parent_path().parent_path();
    const fs::path final
      = temporary.parent_path() / checkpoint_name(state.next_step);
    sync_lines(run_folder);
    // one of the same step, of an attempt whose later steps were cut off
    if (fs::exists(final))
      fs::rename(final, temporary.string() + ".replaced");
    fs::rename(temporary, final);
    sync_path(temporary.parent_path());
    point_link(run_folder, latest_link, final.filename());
    sync_path(run_folder);
    remove_unfinished(temporary.parent_path());
    remove_old(run_folder, final, keep);
    return final;
  } catch (const fs::filesystem_error& error) {
    fail_io(error.path1(), error.code().message());
  }
}

std::optional<fs::path> latest_checkpoint(const fs::path& run_folder) {
  const auto all = complete_checkpoints(run_folder);
  if (all.empty())
    return std::nullopt;
  return all.back();
}

CheckpointState read_checkpoint(const fs::path& folder) {
  try {
    check_files(folder, read_json(folder / "manifest.json"));
  } catch (const json::exception& error) {
    refuse_checkpoint(folder / "manifest.json", error);
  }
  return read_checkpoint_state(folder);
}

CheckpointState read_checkpoint_state(const fs::path& folder) {
  const fs::path path = folder / "state" / "run.json";
  try {
    return checkpoint_state_of(read_json(path));
  } catch (const json::exception& error) {
    refuse_checkpoint(path, error);
  }
}

fs::path weights_folder(const fs::path& checkpoint, const std::string& role,
                        const std::string& replica, bool home) {
  return home ? checkpoint / role : checkpoint / "state" / replica;
}

fs::path optimizer_file(const fs::path& checkpoint, const std::string& role) {
  return checkpoint / "state" / (role + ".optimizer");
}

fs::path rows_file(const fs::path& checkpoint, WorkerId holder) {
  return checkpoint / "state"
         / fmt::format("rows_{:02}.safetensors", holder.value);
}

std::vector<LoadRowsOrder>
rows_to_load(const std::function<fs::path(WorkerId)>& file_of,
             const std::vector<CallInFlight>& calls,
             std::uint32_t num_workers) {
  std::vector<LoadRowsOrder> orders(num_workers);
  for (const auto& [holder, sets] : rows_by_holder(calls))
    orders[new_holder(holder, num_workers).value].files.push_back(
      file_of(holder).string());
  return orders;
}

} // namespace troupe::actors
