// Reader and writer of safetensors files. The reader maps the file and trusts
// nothing: the whole header is checked against the file's actual size before
// tensors are accessible, so nothing is allocated or accessed by a declared
// size. A malformed file is a SafetensorsError that names file and tensor; a
// full disk while writing is a FailureError with the path.
#pragma once

#include "config/base/atomic_file.hpp"
#include "config/base/dtype.hpp"
#include "config/base/error.hpp"
#include "models/io/mapped_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::models {

/// Kinds of faults of a file; the names are those of the golden cases.
enum class SafetensorsFault : std::uint8_t {
  HeaderTooSmall,
  HeaderTooLarge,
  HeaderLength,
  HeaderNotUtf8,
  HeaderNotJson,
  HeaderSchema,
  UnknownDtype,
  DuplicateName,
  ShapeOverflow,
  SizeMismatch,
  OffsetsInvalid,
  DataLength,
};
const char* to_string(SafetensorsFault fault) noexcept;

/// A malformed safetensors file: exit code 2, like every invalid input.
class SafetensorsError : public ConfigError {
public:
  SafetensorsError(const std::string& file, SafetensorsFault fault,
                   const std::string& sentence);
  SafetensorsFault fault() const noexcept {
    return fault_;
  }

private:
  SafetensorsFault fault_;
};

/// A tensor inside a mapped file; valid as long as its file object.
struct StoredTensor {
  std::string name;
  std::string file;  ///< for messages
  std::string dtype; ///< as stored: "F32", "BF16", "I8", ...
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data; ///< row-major, unaligned

  std::int64_t num_elements() const noexcept;
  /// Returns the stored type as a DType. Throws ConfigError naming file and
  /// tensor for types that Troupe does not compute with (I8, F8_E4M3, ...).
  DType type() const;
  /// Converts all elements to `type` into `target` (its exact size in bytes).
  void copy_to(DType type, std::span<std::byte> target) const;
  /// Converts the rows [row0, row1) and columns [col0, col1) of a matrix (a
  /// vector is one column): other bytes of the file are not accessed.
  void copy_box_to(std::int64_t row0, std::int64_t row1, std::int64_t col0,
                   std::int64_t col1, DType type,
                   std::span<std::byte> target) const;
};

/// One open file: an index of checked tensors over mapped memory.
class SafetensorsFile {
public:
  /// Maps and checks `path`. Throws ConfigError if it cannot be read,
  /// SafetensorsError if it is malformed.
  static SafetensorsFile open(const std::filesystem::path& path);
  /// Checks memory of the caller, which must outlive the object.
  static SafetensorsFile view(std::span<const std::byte> bytes,
                              const std::string& file_name);

  /// Returns all tensors in the order of their data.
  const std::vector<StoredTensor>& tensors() const noexcept {
    return tensors_;
  }
  /// Returns nullptr if there is no tensor of that name.
  const StoredTensor* find(std::string_view name) const;
  /// Returns the tensor. Throws ConfigError naming file and tensor if there is
  /// none.
  const StoredTensor& at(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const noexcept {
    return metadata_;
  }

private:
  MappedFile map_; ///< empty for view()
  std::string file_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::map<std::string, std::string> metadata_;
};

/// The tensors of a model folder: `model.safetensors`, or the files that
/// `model.safetensors.index.json` names (if present, the index decides).
class StoredWeights {
public:
  /// Opens the folder. Throws ConfigError if neither exists, or if the index or
  /// a file is invalid.
  static StoredWeights open(const std::filesystem::path& folder);
  /// Opens one file. Throws ConfigError if it is invalid.
  static StoredWeights open_file(const std::filesystem::path& file);

  std::vector<std::string> names() const; ///< sorted
  const StoredTensor* find(std::string_view name) const;
  const StoredTensor& at(std::string_view name) const;

private:
  std::string place_; ///< index or single file, for messages
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;
};

/// A tensor to write; converted from `type` to `stored` block by block.
struct TensorToStore {
  std::string name;
  std::vector<std::int64_t> shape;
  DType type = DType::f32;         ///< type of `data`
  DType stored = DType::f32;       ///< type in the file
  std::span<const std::byte> data; ///< row-major
};

struct StoreOptions {
  /// A shard contains at most this many bytes of data (or one larger tensor).
  std::uint64_t max_shard_bytes = 5'000'000'000;
  Sync sync = Sync::no; ///< fsync of each file and the folder
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
};

/// Writes one file under a temporary name next to `path` and renames it, so
/// that a partial file is never visible. Equal tensors yield equal bytes.
/// Throws FailureError (io) naming the path if the disk is full or not
/// writable.
void write_safetensors(const std::filesystem::path& path,
                       std::span<const TensorToStore> tensors,
                       const StoreOptions& options = {});

/// Writes `model.safetensors`, or numbered shards and their index if the
/// tensors exceed a shard. Tensors keep the given order across shards. Files of
/// an earlier save under these names are removed. Returns the names written.
std::vector<std::string> write_weights(const std::filesystem::path& folder,
                                       std::span<const TensorToStore> tensors,
                                       const StoreOptions& options = {});

} // namespace troupe::models
