#include "models/data/row_cache.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/base/text_hash.hpp"
#include "config/base/user_cache.hpp"
#include "models/io/mapped_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <system_error>

namespace troupe::models {

namespace fs = std::filesystem;

namespace {

using EntryJson = nlohmann::json;

constexpr const char* entry_file = "entry.json";

struct FileSum {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};

FileSum sum_of(const fs::path& file) {
  const MappedFile map(file);
  const auto bytes = map.bytes();
  const auto sum
    = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return {bytes.size(), static_cast<std::uint32_t>(sum)};
}

EntryJson entry_of(const CachedSource& source, const FileSum& sum) {
  return {{"source", source.source},
          {"state", source.state},
          {"bytes", sum.bytes},
          {"crc32", sum.crc32}};
}

EntryJson read_entry(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return EntryJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// Returns true if the file is what was made of this state of the source.
bool is_right(const fs::path& file, const CachedSource& source) {
  std::error_code ignored;
  const auto entry = read_entry(file.parent_path() / entry_file);
  if (!entry.is_object() || entry.value("source", "") != source.source
      || entry.value("state", "") != source.state
      || !fs::is_regular_file(file, ignored))
    return false;
  if (entry == entry_of(source, sum_of(file)))
    return true;
  log::data.warn(fmt::format(
    "{}: another size or checksum than when it was written, so it is made "
    "again of {}",
    file.string(), source.source));
  return false;
}

void make_file(const fs::path& file, const CachedSource& source,
               const MakeFile& make) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  const fs::path unfinished = file.string() + fmt::format(".new{}", ::getpid());
  try {
    make(unfinished);
    const auto sum = sum_of(unfinished);
    // without its entry no file is trusted, so the old entry goes first
    fs::remove(file.parent_path() / entry_file, ignored);
    fs::rename(unfinished, file);
    replace_file(file.parent_path() / entry_file,
                 entry_of(source, sum).dump(2) + "\n");
  } catch (const fs::filesystem_error& error) {
    fs::remove(unfinished, ignored);
    throw FailureError({.code = Errc::io,
                        .who = "cache of rows",
                        .what = error.what(),
                        .cause = ""});
  } catch (...) {
    fs::remove(unfinished, ignored);
    throw;
  }
}

} // namespace

fs::path cached_path(const fs::path& cache, const CachedSource& source) {
  return cache / fmt::format("{:016x}", text_hash(source.source)) / source.name;
}

fs::path cached_file(const fs::path& cache, const CachedSource& source,
                     const MakeFile& make) {
  static std::mutex mutex;
  static std::set<std::string> seen; // guarded by the mutex
  const auto file = cached_path(cache, source);
  const std::lock_guard lock{mutex};
  const auto key = file.string() + '\n' + source.state;
  if (seen.contains(key) && fs::exists(file))
    return file;
  if (!is_right(file, source))
    make_file(file, source, make);
  seen.insert(key);
  return file;
}

fs::path row_cache_folder(const std::string& file) {
  const auto folder = user_cache_folder();
  if (folder.empty())
    throw ConfigError({.place = {file, 0},
                       .path = "",
                       .expected = "a folder for the rows that are made of it",
                       .got = "neither HOME nor XDG_CACHE_HOME",
                       .hint = "XDG_CACHE_HOME=FOLDER"});
  return folder / "rows";
}

} // namespace troupe::models
