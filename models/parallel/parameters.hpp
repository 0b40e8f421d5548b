// A shard's memory: one flat fp32 buffer per plane (weight, gradient, and the
// two moments of AdamW), and views into it by parameter. Parameters are stored
// in the order of config's `parameters()`, each at an offset that is a multiple
// of 64 bytes, as `plans::Layout` prescribes, so that a move is a plain copy
// and an all-reduce of the gradients is one call. Padding stays zero in every
// plane.
//
// With z1 the moments' planes hold this dp rank's parts only; with z3 all
// planes do, and kernels see weights and gradients through windows, buffers
// that the units pass through (plans/weights/gather_buffers.hpp,
// models/sync/zero3_flow.hpp).
//
// Where products read bf16, there are rounded weights beside
// (rounded_weights.hpp); every way to change weights makes these stale. Weights
// that nothing changes may have no fp32 masters (frozen_layout.hpp).
//
// A plane may leave its device (plane_memory.hpp): an offloaded plane is in
// host memory, where others can read it; a dropped one is nowhere. Where it
// returns to another address, views of it are made anew.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/kernels/aligned_floats.hpp"
#include "models/parallel/frozen_layout.hpp"
#include "models/parallel/plane_memory.hpp"
#include "models/parallel/rounded_weights.hpp"
#include "net/base/host_copy.hpp"
#include "net/base/page_block.hpp"
#include "plans/weights/layout.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::models {

struct LocalModel;

/// Content of a flat buffer. `grad`, `m` and `v` exist for trained roles only.
enum class Plane : std::uint8_t { weight, grad, m, v };
inline constexpr std::size_t num_planes = 4;
/// Returns the kind of layout that cuts the plane: optimizer for the moments.
plans::LayoutKind layout_kind(Plane plane);

/// Offsets of parameters in a plane that holds all of them.
struct PaddedOffsets {
  std::vector<std::int64_t> offsets;
  std::int64_t size = 0; ///< elements, a multiple of 16
};
PaddedOffsets padded_offsets(const std::vector<ParameterShape>& shapes);

/// Flat buffers of one model. Not thread-safe; views stay valid while it
/// exists.
class Parameters {
public:
  /// Allocates planes filled with zeros. `trainable` also allocates grad, m and
  /// v. A null `memory` means system memory. `products` is the type in which
  /// products read weights (Backend::storage).
  Parameters(std::vector<ParameterShape> shapes, bool trainable,
             const net::BlockMemory* memory = nullptr,
             DType products = DType::f32);
  /// Allocates the planes of one device of a strategy. Planes that nothing else
  /// reads should not be shared: private memory comes in large pages.
  Parameters(const LocalModel& part, bool trainable,
             const net::BlockMemory* memory = nullptr,
             net::PageSharing sharing = net::PageSharing::by_descriptor,
             DType products = DType::f32, Masters masters = Masters::kept);
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  const std::vector<ParameterShape>& shapes() const {
    return shapes_;
  }
  bool trainable() const {
    return trainable_;
  }
  /// Returns the first element of parameter `index` in the windows of weights
  /// and gradients.
  std::int64_t offset(std::size_t index) const {
    return offsets_[index];
  }
  /// Returns the index of a parameter by its HF name, or -1.
  std::int64_t find(std::string_view name) const;
  /// Returns a view [rows, cols], or [rows] for vectors.
  at::Tensor view(std::size_t index, Plane plane) const;
  /// Returns a view of `count` adjacent parameters from `index` on as one [sum
  /// of rows, cols] matrix (or [sum of rows] for vectors), or undefined if
  /// padding or other parameters are between them or their columns differ.
  at::Tensor fused_view(std::size_t index, std::size_t count,
                        Plane plane) const;
  /// Returns weights likewise as products read them: rounded, if they are; up
  /// to date after `refresh_rounded` or a gather.
  at::Tensor product_view(std::size_t index, std::size_t count = 1) const;
  /// Returns the whole plane, padding included, 64-byte aligned.
  std::span<const float> plane(Plane plane) const;
  std::span<float> plane(Plane plane); ///< to change
  bool has_rounded() const;
  /// Returns whether the plane of weights stores what kernels read instead of
  /// masters: nothing but `stored_at` and views may be used of it then.
  bool has_no_masters() const {
    return !frozen_layout_.fp32_offsets.empty();
  }
  /// Returns the first element of a weight in such a plane.
  TypedPtr stored_at(std::size_t index) const;
  /// Rounds weights that may have changed; with z3 rounded ones are gathered.
  void refresh_rounded(RowKernels& backend);
  /// Records that rounded weights were gathered: they are those of masters on
  /// other devices, and newer than those here.
  void rounded_gathered();
  /// Returns the weights' plane and what is rounded (null: nothing, or with z3
  /// the window) for a kernel that changes both alike.
  std::pair<float*, TypedPtr> updated_weights();
  /// Returns where the newest values are: on the device, or in host memory.
  net::BlockBytes values(Plane plane) const;
  /// Returns them for the host to read; kernels must have run.
  net::HostRead read(Plane plane) const;
  net::HostWrite change(Plane plane); ///< for the host to change
  /// Returns the plane of the device for the host to overwrite.
  net::HostWrite overwrite(Plane plane);
  /// Returns what kernels see: the plane itself, or with z3, for weights and
  /// gradients, the buffer of the units.
  std::span<float> window(Plane plane);
  /// Returns the window of weights as products read them: rounded, if they are.
  TypedPtr product_window();
  /// Returns the bytes of everything that is allocated here.
  std::uint64_t num_bytes() const;

  /// Copies the plane to host memory, unless it is there, and frees the device
  /// memory. A device with copies of its own may still be copying.
  void offload(Plane plane);
  /// Returns when others may read what was offloaded (`published`).
  void finish_offload(Plane plane) const;
  /// Records that planes on the device were written.
  void changed();
  /// Records the same of the optimizer, which keeps what is rounded equal.
  void changed_by_optimizer();
  /// Copies an offloaded plane back; views are out of date if `moves_planes`.
  void reload(Plane plane);
  /// Frees the device memory; the values are lost.
  void drop(Plane plane);
  /// Prepares a dropped or offloaded plane for being overwritten as a whole.
  void expect(Plane plane);
  /// Returns the plane as others may read it, in a shared block if there are
  /// any: one that was ever offloaded is in host memory, up to date meanwhile
  /// and when this returns.
  const net::PageBlock& published(Plane plane) const;
  /// Returns the block that holds the current values.
  const net::PageBlock& newest(Plane plane) const;
  /// Returns whether planes have another address after they were away.
  bool moves_planes() const {
    return memory_ != nullptr || has_rounded();
  }
  const net::BlockMemory* memory() const { ///< of the device, or null
    return memory_;
  }
  /// Returns the bytes of all planes that are on the device.
  std::uint64_t device_bytes() const;

private:
  struct Window {
    AlignedFloats floats;
    std::int64_t size = 0;

    void allocate(std::int64_t count, const net::BlockMemory* memory);
  };
  void allocate(Plane plane, std::int64_t count);
  void rounded_leave(Plane plane);
  void rounded_return(Plane plane);
  void index_names();
  void make_stale(Plane plane);
  void check_masters(Plane plane) const;
  bool has_windows() const;
  float* seen(Plane plane) const; ///< by kernels
  /// Returns sizes as of `fused_view`; empty: undefined.
  std::vector<std::int64_t> fused_sizes(std::size_t index,
                                        std::size_t count) const;
  const PlaneMemory& memory_of(Plane plane) const;
  PlaneMemory& memory_of(Plane plane);

  std::vector<ParameterShape> shapes_;
  /// By name; thousands of them with experts.
  std::unordered_map<std::string_view, std::int64_t> index_of_;
  std::vector<std::int64_t> offsets_;
  bool trainable_ = false;
  const net::BlockMemory* memory_; ///< of the device; null: system memory
  net::PageSharing sharing_ = net::PageSharing::by_descriptor;
  std::optional<PlaneMemory> planes_[num_planes];
  Window windows_[2];      ///< weight and grad; empty: the plane is its window
  RoundedWeights rounded_; ///< of what kernels see
  FrozenLayout frozen_layout_; ///< of weights without masters
};

} // namespace troupe::models
