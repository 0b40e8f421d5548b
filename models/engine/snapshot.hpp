// A copy of an engine's weights, and optionally of its optimizer, as of one
// moment: checkpoints are written from it while training goes on. Its memory is
// kept for the next one. The engine's thread fills it, any other thread writes
// it to files; the caller ensures that these do not overlap.
#pragma once

#include "config/base/dtype.hpp"
#include "config/model/model_shape.hpp"
#include "models/kernels/aligned_floats.hpp"
#include "net/base/page_lock.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace troupe::models {

class Parameters;
enum class Plane : std::uint8_t;
struct Groups;
struct LocalModel;

/// Format of a written folder of weights.
struct HfStore {
  DType dtype = DType::f32; ///< of every tensor in the files
  /// Most bytes of data per file (unless one tensor is larger).
  std::uint64_t max_shard_bytes = 5'000'000'000;
  /// Folder of the tokenizer files to copy; "": the folder that was loaded.
  std::filesystem::path files_from = {};
  /// Model that adapters say they adapt; "": the folder that was loaded.
  std::string base_model = {};
};

class Snapshot {
public:
  struct Source {
    const LocalModel& part;
    std::filesystem::path folder; ///< source of the tokenizer files
    std::uint64_t optimizer_steps = 0;
    std::uint64_t applied_steps = 0;
    /// Memory of the device that copies to the buffers; null: the host's.
    const net::BlockMemory* device = nullptr;
  };
  /// Records the source's shapes and steps, and whether moments of a trained
  /// role are included (`with_moments`).
  void describe(const Source& source, bool with_moments);
  /// Returns the buffer of a plane, in the layout of the whole model on one
  /// device, for callers that copy the parts in themselves. Page-locked, so
  /// that a device copies at the rate of its link.
  std::span<std::byte> room(Plane plane);
  /// Returns the bytes of the weights, the whole model's.
  std::uint64_t weight_bytes() const;
  /// Copies all planes. All devices of a replica call it; the first one then
  /// has the whole model, the others nothing.
  void fill(const LocalModel& part, const Parameters& parameters,
            const Groups& groups);

  /// Writes a whole HF folder, or of adapters a PEFT folder. Throws
  /// FailureError (io) naming the path.
  void save_hf(const std::filesystem::path& folder, const HfStore& store) const;
  /// Writes moments (of a trained role) and step counts to one file;
  /// `with_weights` also the fp32 weights, for runs whose folders hold fewer
  /// bits. Throws FailureError (io).
  void save_state(const std::filesystem::path& file, bool with_weights) const;

private:
  struct Buffer {
    AlignedFloats floats;
    net::PageLock lock; ///< of all of them
  };
  std::span<const std::byte> bytes(const Buffer& plane,
                                   std::size_t index) const;

  ModelShape shape_;
  std::filesystem::path folder_;
  std::vector<ParameterShape> shapes_;
  std::vector<std::int64_t> offsets_; ///< first element of each parameter
  std::int64_t size_ = 0;             ///< elements of a plane
  const net::BlockMemory* device_ = nullptr;
  Buffer weight_, m_, v_;
  bool has_moments_ = false;
  std::uint64_t optimizer_steps_ = 0;
  std::uint64_t applied_steps_ = 0;
};

} // namespace troupe::models
