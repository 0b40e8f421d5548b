#include "actors/worker_base/file_source.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/base/text_hash.hpp"
#include "config/settings/workflow_file.hpp"
#include "models/io/mapped_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

/// Period in which a process looks whether another one has fetched a file.
constexpr std::chrono::milliseconds lock_period{50};

bool is_wanted(const fs::path& file, ModelFiles wanted) {
  return wanted == ModelFiles::all || file.extension() != ".safetensors";
}

[[noreturn]] void fail_here(const fs::path& path, const std::string& what) {
  throw FailureError{{.code = Errc::io,
                      .who = "",
                      .what = fmt::format("{}: {}", path.string(), what),
                      .cause = ""}};
}

fs::path temporary_folder() {
  std::error_code error;
  auto folder = fs::temp_directory_path(error);
  if (error)
    fail_here("TMPDIR or /tmp", error.message());
  return folder;
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    fail_here(path, error.message());
}

FailureError no_room(const std::string& file, std::uint64_t bytes,
                     const fs::path& folder, std::uint64_t free) {
  return FailureError{
    {.code = Errc::io,
     .who = "",
     .what = fmt::format(
       "no room for {} ({} bytes) in {}, which has {}: give the host a larger "
       "TMPDIR (cluster.env.TMPDIR)",
       file, bytes, folder.string(), free),
     .cause = ""}};
}

} // namespace

std::vector<std::size_t> files_needed(const std::vector<SharedFile>& files,
                                      const fs::path& path, ModelFiles wanted) {
  std::vector<std::size_t> needed;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const fs::path file = files[i].path;
    if (file == path)
      return {i};
    if (file.parent_path() == path && is_wanted(file, wanted))
      needed.push_back(i);
  }
  return needed;
}

std::optional<fs::path> path_within(const fs::path& folder,
                                    const fs::path& path) {
  const auto part
    = path.lexically_normal().lexically_relative(folder.lexically_normal());
  if (part.empty() || part == "." || *part.begin() == "..")
    return std::nullopt;
  return part;
}

FileSource::FileSource(FileShare share, const fs::path& run_folder,
                       const std::string& run_id, WorkerId worker)
  : share_(std::move(share)),
    run_folder_(run_folder) {
  std::error_code ignored; // a path that cannot be examined is not shared
  if (share_.mode != "false"
      && (share_.probe.empty() || fs::exists(share_.probe, ignored)))
    return;
  host_ = std::make_unique<HostFolder>(temporary_folder(), run_id);
  run_folder_ = host_->path() / fmt::format("run_{:02}", worker.value);
  for (const char* folder : {"logs", "trace"})
    make_folder(run_folder_ / folder);
  for (const auto& [path, text] : share_.texts) {
    const auto place = place_of_copy(path);
    make_folder(place.parent_path());
    replace_file(place, text);
  }
  if (!share_.workflow.empty())
    use_workflow_text(share_.workflow, share_.texts.at(share_.workflow));
}

void FileSource::connect(std::unique_ptr<FileExchange> exchange) {
  exchange_ = std::move(exchange);
  growing_ = std::make_unique<GrowingFiles>(run_folder_, *exchange_);
}

FileExchange& FileSource::exchange() {
  TROUPE_CHECK(exchange_ != nullptr, "the worker has not been set up");
  return *exchange_;
}

const std::vector<SharedFile>& FileSource::listed() {
  if (!files_)
    files_ = exchange().open();
  return *files_;
}

// -- reading -----------------------------------------------------------------

/// Returns the path by which the master knows it.
fs::path FileSource::master_path(const fs::path& path) const {
  const auto part = path_within(run_folder_, path);
  auto known = (part ? fs::path(share_.folder) / *part : path);
  known = known.lexically_normal();
  return known.has_filename() ? known : known.parent_path(); // "models/a/"
}

/// Files of one folder lie together; nothing of a path can leave the folder of
/// the host.
fs::path FileSource::place_of_copy(const fs::path& path) const {
  const auto normal = path.lexically_normal();
  return host_->path()
         / fmt::format("{:016x}", text_hash(normal.parent_path().string()))
         / normal.filename();
}

fs::path FileSource::local(const fs::path& path, ModelFiles wanted) {
  if (is_shared() || path.empty())
    return path;
  const auto wished = master_path(path);
  if (share_.texts.contains(wished.string()))
    return place_of_copy(wished);
  const std::lock_guard lock{reading_};
  const auto& files = listed();
  const auto needed = files_needed(files, wished, wanted);
  const auto in_place = [&](std::size_t i) { return is_in_place(files[i]); };
  if (std::ranges::all_of(needed, in_place)) // or nobody said that it is read
    return wished;
  for (const auto i : needed)
    fetch(i, files[i]);
  const auto place = place_of_copy(files[needed.front()].path);
  return files[needed.front()].path == wished ? place : place.parent_path();
}

/// Returns whether this host has the same file under the same path, as when it
/// was copied there with its times, or only the run folder is not shared.
bool FileSource::is_in_place(const SharedFile& file) const {
  struct stat found {};
  return share_.mode != "false" && ::stat(file.path.c_str(), &found) == 0
         && static_cast<std::uint64_t>(found.st_size) == file.bytes
         && found.st_mtim.tv_sec * std::int64_t{1'000'000'000}
                + found.st_mtim.tv_nsec
              == file.changed_ns;
}

void FileSource::fetch(std::size_t number, const SharedFile& file) {
  const auto target = place_of_copy(file.path);
  if (fs::exists(target))
    return;
  make_folder(target.parent_path());
  HostFileLock lock(target.string() + ".lock");
  wait_for(lock);
  if (!fs::exists(target)) // another process may have fetched it
    receive(number, file, target);
}

void FileSource::wait_for(HostFileLock& lock) {
  std::unique_lock waits{abort_.mutex};
  while (!lock.try_lock())
    if (abort_.comes.wait_for(waits, lock_period,
                              [this] { return abort_.came; }))
      throw FailureError{{.code = Errc::aborted,
                          .who = "",
                          .what = "the run has failed",
                          .cause = ""}};
}

void FileSource::receive(std::size_t number, const SharedFile& file,
                         const fs::path& target) {
  std::error_code unknown; // then writing says it
  const auto free = fs::space(target.parent_path(), unknown).available;
  if (!unknown && free < file.bytes)
    throw no_room(file.path, file.bytes, host_->path(), free);
  AtomicFile copy(target);
  std::vector<std::byte> part;
  for (std::uint64_t offset = 0; offset < file.bytes; offset += part.size()) {
    part.resize(
      std::min<std::uint64_t>(file.bytes - offset, defaults::move_chunk_bytes));
    exchange().read(number, offset, part);
    copy.write(part);
    ++progress_;
  }
  copy.commit();
}

// -- writing -----------------------------------------------------------------

fs::path FileSource::to_write(const fs::path& path) const {
  if (is_shared())
    return path;
  const auto part = path_within(share_.folder, path);
  TROUPE_CHECK(part.has_value(), path.string() + " is not in the run folder");
  auto place = run_folder_ / *part;
  make_folder(place.parent_path());
  return place;
}

fs::path FileSource::give(const fs::path& written) {
  if (is_shared())
    return written;
  const auto part = path_within(run_folder_, written);
  TROUPE_CHECK(part.has_value(), written.string() + " is not in our folder");
  {
    const models::MappedFile file(written);
    exchange().give({.file = part->string(), .how = TakeFile::whole},
                    file.bytes());
  }
  std::error_code ignored; // it goes with the folder
  fs::remove(written, ignored);
  return fs::path(share_.folder) / *part;
}

void FileSource::append(const fs::path& path, const std::string& text) {
  if (!is_shared()) {
    const auto part = path_within(run_folder_, path);
    TROUPE_CHECK(part.has_value(), path.string() + " is not in our folder");
    return exchange().give({.file = part->string(), .how = TakeFile::append},
                           std::as_bytes(std::span(text)));
  }
  const std::lock_guard lock{appending_};
  appended_.try_emplace(path, path).first->second.append(text);
}

// -- the end -----------------------------------------------------------------

void FileSource::close() {
  if (growing_)
    growing_->finish();
  exchange_.reset();
  leave();
}

void FileSource::leave() {
  if (host_)
    host_->leave();
}

void FileSource::abort() {
  if (growing_)
    growing_->abort();
  const std::lock_guard lock{abort_.mutex};
  abort_.came = true;
  abort_.comes.notify_all();
}

} // namespace troupe::actors
