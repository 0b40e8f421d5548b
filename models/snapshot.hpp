// A copy of an engine's weights, and of its optimizer where asked, as of one
// moment: checkpoints are written from it while training goes on. Its memory is
// kept for the next one. The engine's thread fills it, any other thread writes
// it; the user of both sees to it that these do not overlap.
#pragma once

#include "config/dtype.hpp"
#include "config/model_shape.hpp"
#include "models/aligned_floats.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace troupe::models {

class Parameters;
enum class Plane : std::uint8_t;
struct Groups;
struct ModelPart;

/// How a folder of weights is written.
struct HfStore {
  DType dtype = DType::f32; ///< of every tensor in the files
  /// A file holds at most so many bytes of data (or one larger tensor).
  std::uint64_t max_shard_bytes = 5'000'000'000;
  /// Whose tokenizer files go along; "": of the folder that was loaded.
  std::filesystem::path files_from = {};
};

class Snapshot {
public:
  struct Source {
    const ModelPart& part;
    std::filesystem::path folder; ///< tokenizer files come from here
    std::uint64_t optimizer_steps = 0;
    std::uint64_t applied_steps = 0;
  };
  /// Takes down whose copy it is and makes room for the whole model's planes:
  /// the weights, and the moments of a trained role `with_moments`.
  void describe(const Source& source, bool with_moments);
  /// Room of a plane, in the layout of the whole model on one device; for
  /// whoever copies the parts in.
  std::span<std::byte> room(Plane plane);
  /// Copies all planes in. All devices of a replica call it; the first one then
  /// has the whole model's, the others nothing.
  void fill(const ModelPart& part, const Parameters& parameters,
            const Groups& groups);

  /// A whole HF folder. Throws FailureError (io) naming the path.
  void save_hf(const std::filesystem::path& folder, const HfStore& store) const;
  /// Moments (of a trained role) and step counts, one file; `with_weights` also
  /// the fp32 weights, for runs whose folders hold fewer bits. Throws
  /// FailureError (io).
  void save_state(const std::filesystem::path& file, bool with_weights) const;

private:
  std::span<const std::byte> bytes(const AlignedFloats& plane,
                                   std::size_t index) const;

  ModelShape shape_;
  std::filesystem::path folder_;
  std::vector<ParameterShape> shapes_;
  std::vector<std::int64_t> offsets_; ///< first element of each parameter
  std::int64_t size_ = 0;             ///< elements of a plane
  AlignedFloats weight_, m_, v_;
  bool has_moments_ = false;
  std::uint64_t optimizer_steps_ = 0;
  std::uint64_t applied_steps_ = 0;
};

} // namespace troupe::models
