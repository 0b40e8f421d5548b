#include "actors/worker_base/growing_files.hpp"

#include "config/base/defaults.hpp"
#include "config/base/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

/// Period in which the files follow: the page shows them as late.
constexpr std::chrono::seconds growth_period{1};
constexpr const char* growing_folders[] = {"logs", "trace"};

/// Returns the next bytes of a file, at most one piece.
std::vector<std::byte> read_part(const fs::path& file, std::uint64_t offset,
                                 std::uint64_t bytes) {
  std::vector<std::byte> part(
    std::min<std::uint64_t>(bytes, defaults::move_chunk_bytes));
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  stream.read(reinterpret_cast<char*>(part.data()),
              static_cast<std::streamsize>(part.size()));
  part.resize(static_cast<std::size_t>(stream.gcount()));
  return part;
}

} // namespace

GrowingFiles::GrowingFiles(fs::path folder, FileExchange& exchange)
  : folder_(std::move(folder)),
    exchange_(exchange),
    thread_([this] { run(); }) {}

GrowingFiles::~GrowingFiles() {
  finish();
}

void GrowingFiles::finish() {
  end(/*aborted=*/false);
  if (thread_.joinable())
    thread_.join();
}

void GrowingFiles::abort() {
  end(/*aborted=*/true);
}

void GrowingFiles::end(bool aborted) {
  const std::lock_guard lock{mutex_};
  ended_ = true;
  aborted_ = aborted_ || aborted;
  ends_.notify_all();
}

void GrowingFiles::hand_over(const fs::path& file, const std::string& name) {
  std::error_code ignored; // a file of a trace that was just removed
  const auto size = fs::file_size(file, ignored);
  auto& given = given_[name];
  if (ignored || size == given)
    return;
  if (size < given) { // a log that began anew
    exchange_.give({.file = name, .how = TakeFile::remove}, {});
    given = 0;
  }
  while (given < size) {
    const auto part = read_part(file, given, size - given);
    if (part.empty())
      return;
    exchange_.give({.file = name, .how = TakeFile::append}, part);
    given += part.size();
  }
}

void GrowingFiles::hand_over() {
  std::set<std::string> present;
  for (const char* folder : growing_folders) {
    std::error_code ignored; // it may not exist yet
    for (const auto& entry :
         fs::directory_iterator(folder_ / folder, ignored)) {
      auto name = entry.path().lexically_relative(folder_).string();
      hand_over(entry.path(), name);
      present.insert(std::move(name));
    }
  }
  for (auto known = given_.begin(); known != given_.end();)
    if (present.contains(known->first)) {
      ++known;
    } else {
      exchange_.give({.file = known->first, .how = TakeFile::remove}, {});
      known = given_.erase(known);
    }
}

void GrowingFiles::run() {
  try {
    std::unique_lock lock{mutex_};
    while (!ends_.wait_for(lock, growth_period, [this] { return ended_; })) {
      lock.unlock();
      hand_over();
      lock.lock();
    }
    if (aborted_)
      return;
    lock.unlock();
    hand_over();
  } catch (const std::exception& error) {
    log::runtime.warn(
      fmt::format("logs and traces stay on this host: {}", error.what()));
  }
}

} // namespace troupe::actors
