// Files that were made of others (unpacked, converted, fetched), in the user's
// cache: one per source, made again when the source is another one than it was,
// or when its bytes are not those that were written (size and CRC-32, checked
// once per process). A file appears whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace troupe::models {

/// The source that a cached file is made of.
struct CachedSource {
  std::string source; ///< full path or URL
  std::string state;  ///< changes with its contents: size, time, ETag
  std::string name;   ///< of the file made of it: "train.jsonl"
};

/// Writes a whole file under the name that it is given.
using MakeFile = std::function<void(const std::filesystem::path& target)>;

/// Returns where the cache has a source's file, whether or not it is there.
std::filesystem::path cached_path(const std::filesystem::path& cache,
                                  const CachedSource& source);

/// Returns the path of the source's file in `cache`; calls `make` unless it is
/// there and right. Throws what `make` throws, and FailureError (io) that names
/// the path if the cache cannot be written. Thread-safe.
std::filesystem::path cached_file(const std::filesystem::path& cache,
                                  const CachedSource& source,
                                  const MakeFile& make);

/// Returns the folder of cached rows of this user. Throws ConfigError that
/// names `file` if there is neither a home nor XDG_CACHE_HOME.
std::filesystem::path row_cache_folder(const std::string& file);

} // namespace troupe::models
