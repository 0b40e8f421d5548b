#include "models/data/plain_rows.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/settings/data_files.hpp"
#include "models/data/parquet_rows.hpp"
#include "models/data/remote_file.hpp"
#include "models/data/row_cache.hpp"
#include "models/io/gunzip.hpp"
#include "models/io/mapped_file.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::models {

namespace fs = std::filesystem;

namespace {

/// Part of every state: files that an older program made are made again.
constexpr int plain_rows_version = 1;

std::string head_of(const fs::path& file) {
  std::array<char, 4> head{};
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), head.size());
  return {head.data(), static_cast<std::size_t>(stream.gcount())};
}

/// Returns a text that changes when somebody writes the file.
std::string state_of(const fs::path& file) {
  return fmt::format("version {}, {} bytes, changed {}", plain_rows_version,
                     fs::file_size(file),
                     fs::last_write_time(file).time_since_epoch().count());
}

void unpack(const fs::path& file, const fs::path& target) {
  const MappedFile packed(file);
  AtomicFile plain(target);
  gunzip(packed.text(), file.string(),
         [&](std::string_view part) { plain.write(part); });
  plain.commit();
}

} // namespace

RowFormat row_format(std::string_view head, const fs::path& file) {
  if (is_gzip(head))
    return RowFormat::gzip;
  return is_parquet(head) || file.extension() == ".parquet"
           ? RowFormat::parquet
           : RowFormat::json_lines;
}

std::string plain_name(const fs::path& file) {
  auto name = file.filename();
  for (const char* ending : {".gz", ".parquet", ".jsonl"})
    if (name.extension() == ending)
      name.replace_extension();
  return name.string() + ".jsonl";
}

namespace {

fs::path plain_rows_here(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored))
    return file; // opening it says what is wrong with it
  const auto format = row_format(head_of(file), file);
  if (format == RowFormat::json_lines)
    return file;
  const CachedSource source{.source = fs::absolute(file).string(),
                            .state = state_of(file),
                            .name = plain_name(file)};
  return cached_file(row_cache_folder(file.string()), source,
                     [&](const fs::path& target) {
                       log::data.info("makes JSON lines of " + file.string());
                       if (format == RowFormat::gzip)
                         unpack(file, target);
                       else
                         write_parquet_rows(file, target);
                     });
}

} // namespace

bool is_data_file(const fs::path& file) {
  std::error_code ignored;
  return is_remote_file(file.string()) || fs::is_regular_file(file, ignored);
}

fs::path plain_rows(const fs::path& file) {
  const auto name = file.string();
  if (!is_remote_file(name))
    return plain_rows_here(file);
  const auto fetched = fetched_file(name);
  try {
    return plain_rows_here(fetched);
  } catch (const ConfigError& error) {
    throw ConfigError(Place{name, 0}, error.what());
  }
}

Settings with_plain_rows(Settings settings) {
  auto files = train_files(settings.data);
  for (auto& file : files)
    file.path = plain_rows(file.path).string();
  set_train_files(settings.data, std::move(files));
  for (auto* file : {&settings.data.ptx, &settings.eval.data})
    if (!file->empty())
      *file = plain_rows(*file).string();
  return settings;
}

} // namespace troupe::models
