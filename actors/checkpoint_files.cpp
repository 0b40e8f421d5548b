#include "actors/checkpoint_files.hpp"

#include "config/error.hpp"

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

json manifest_of(const fs::path& folder) {
  json files = json::object();
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (!entry.is_regular_file())
      continue;
    sync_path(entry.path());
    files[entry.path().lexically_relative(folder).string()]
      = {{"bytes", entry.file_size()}, {"crc32", checksum_of(entry.path())}};
  }
  return {{"format", manifest_version}, {"files", files}};
}

/// Doubles as bit patterns: what is carried must come back to the bit (I8).
json state_json(const CheckpointState& state) {
  json carried = json::object();
  for (const auto& [name, value] : state.carried)
    carried[name] = std::bit_cast<std::uint64_t>(value);
  json early = json::array();
  for (const auto& call : state.early)
    early.push_back(json_of(call));
  return {{"next_step", state.next_step.value},
          {"versions", state.versions},
          {"carried_bits", carried},
          {"early_calls", early},
          {"run_id", state.run_id}};
}

/// By step. Other folders that stand beside them are the user's.
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

/// The name that a link of the run folder points at; empty: there is none.
fs::path linked_name(const fs::path& run_folder, const char* link) {
  std::error_code ignored;
  return fs::read_symlink(run_folder / link, ignored).filename();
}

/// All but the newest `keep` (0: keeps all), `written` and the best one.
void remove_old(const fs::path& run_folder, const fs::path& written,
                std::uint32_t keep) {
  const auto all = complete_checkpoints(run_folder);
  const auto best = linked_name(run_folder, best_link);
  for (std::size_t i = 0; keep > 0 && i + keep < all.size(); ++i)
    if (all[i].filename() != best && all[i].filename() != written.filename())
      fs::remove_all(all[i]);
}

[[noreturn]] void damaged(const fs::path& path, const std::string& expected,
                          const std::string& got) {
  throw ConfigError({.place = {path.string(), 0},
                     .path = "",
                     .expected = expected,
                     .got = got + ": the checkpoint is damaged",
                     .hint = "removing its step_ folder: the run then goes on "
                             "from the checkpoint before"});
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
  std::error_code ignored; // what cannot be looked at is not there
  return fs::exists(run_folder / "checkpoints" / checkpoint_name(next_step)
                      / "manifest.json",
                    ignored);
}

fs::path begin_checkpoint(const fs::path& run_folder, StepId next_step) {
  try {
    const fs::path temporary
      = run_folder / "checkpoints" / (".tmp-" + checkpoint_name(next_step));
    fs::remove_all(temporary);
    fs::create_directories(temporary / "state");
    return temporary;
  } catch (const fs::filesystem_error& error) {
    fail_io(error.path1(), error.code().message());
  }
}

fs::path commit_checkpoint(const fs::path& temporary,
                           const CheckpointState& state, std::uint32_t keep) {
  try {
    write_text(temporary / "state" / "run.json", state_json(state).dump(2));
    write_text(temporary / "manifest.json", manifest_of(temporary).dump(2));
    const fs::path run_folder = temporary.parent_path().parent_path();
    const fs::path final
      = temporary.parent_path() / checkpoint_name(state.next_step);
    fs::remove_all(final);
    fs::rename(temporary, final);
    sync_path(temporary.parent_path());
    point_link(run_folder, latest_link, final.filename());
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
    const json value = read_json(path);
    CheckpointState state;
    state.next_step = StepId{value.at("next_step").get<std::uint32_t>()};
    state.versions = value.at("versions");
    for (const auto& [name, bits] : value.at("carried_bits").items())
      state.carried[name] = std::bit_cast<double>(bits.get<std::uint64_t>());
    for (const auto& call : value.at("early_calls"))
      state.early.push_back(early_call_of(call));
    state.run_id = value.at("run_id");
    return state;
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

std::vector<LoadRowsOrder> rows_to_load(const fs::path& checkpoint,
                                        const std::vector<EarlyCall>& calls,
                                        std::uint32_t num_workers) {
  std::vector<LoadRowsOrder> orders(num_workers);
  for (const auto& [holder, sets] : rows_by_holder(calls))
    orders[new_holder(holder, num_workers).value].files.push_back(
      rows_file(checkpoint, holder).string());
  return orders;
}

} // namespace troupe::actors
