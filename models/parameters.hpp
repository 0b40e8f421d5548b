// A shard's memory: one flat fp32 buffer a plane (weight, gradient, and the two
// moments of AdamW), and views into it by parameter. Parameters stand in the
// order of config's `parameters()`, each at an offset that is a multiple of 64
// bytes, as `plans::Layout` prescribes, so that a move is a plain copy and an
// all-reduce of the gradients is one call. Padding stays zero in every plane.
//
// With z1 the moments' planes hold this copy's parts only, with z3 all planes
// do, and what computing sees of weights and gradients are windows, rooms
// through which the units pass (plans/unit_windows.hpp, models/unit_flow.hpp).
//
// A plane may leave its device and come back to the same address: offloaded, it
// is in host memory, from where others read it; dropped, it is nowhere.
#pragma once

#include "config/model_shape.hpp"
#include "models/aligned_floats.hpp"
#include "net/memory_count.hpp"
#include "net/page_block.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::models {

struct ModelPart;

/// What a flat buffer holds. `grad`, `m` and `v` exist for trained roles only.
enum class Plane : std::uint8_t { weight, grad, m, v };
inline constexpr std::size_t num_planes = 4;

/// Where parameters stand in a plane that holds all of them.
struct PaddedOffsets {
  std::vector<std::int64_t> offsets;
  std::int64_t size = 0; ///< elements, a multiple of 16
};
PaddedOffsets padded_offsets(const std::vector<ParameterShape>& shapes);

/// Flat buffers of one model. Not thread-safe; views stay valid until it dies.
class Parameters {
public:
  /// All planes zero. `trainable` also allocates grad, m and v. Null memory is
  /// the system's.
  Parameters(std::vector<ParameterShape> shapes, bool trainable,
             const net::BlockMemory* memory = nullptr);
  /// What one device of a strategy holds. Planes that nobody else reads are not
  /// shared: private memory comes in large pages.
  Parameters(const ModelPart& part, bool trainable,
             const net::BlockMemory* memory = nullptr,
             net::PageSharing sharing = net::PageSharing::by_descriptor);
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  const std::vector<ParameterShape>& shapes() const {
    return shapes_;
  }
  bool trainable() const {
    return trainable_;
  }
  /// First element of parameter `index` in the windows of weights and
  /// gradients.
  std::int64_t offset(std::size_t index) const {
    return offsets_[index];
  }
  /// Index of a parameter by its HF name, or -1.
  std::int64_t find(std::string_view name) const;
  /// View [rows, cols], or [rows] for vectors.
  at::Tensor view(std::size_t index, Plane plane) const;
  /// View of `count` neighbours from `index` on as one [sum of rows, cols]
  /// matrix (or [sum of rows] for vectors), or undefined where padding or other
  /// parameters stand between them or their columns differ.
  at::Tensor fused_view(std::size_t index, std::size_t count,
                        Plane plane) const;
  /// The whole plane, padding included, 64-byte aligned.
  std::span<float> plane(Plane plane) const;
  /// What computing sees: the plane itself, but with z3 of weights and
  /// gradients the room of the units.
  std::span<float> window(Plane plane) const;
  /// Of everything that is allocated here.
  std::uint64_t num_bytes() const;

  /// Copies the plane to host memory, which it keeps for the next time (and
  /// does not write again while nothing changed), and gives the device's back.
  /// Twice is no error.
  void offload(Plane plane);
  /// Somebody wrote to planes on the device.
  void changed();
  /// Brings an offloaded plane back; nothing to do if it is on the device.
  void reload(Plane plane);
  /// Gives the device's memory back; the values are gone.
  void drop(Plane plane);
  /// Somebody writes all of a plane that was dropped or offloaded.
  void expect(Plane plane);
  /// The plane as others may read it, in a shared block where the system has
  /// them: a plane that was ever offloaded lies in host memory, up to date
  /// while it is offloaded. Valid until this dies.
  const net::PageBlock& lent(Plane plane) const;
  /// Where its values are now.
  const net::PageBlock& newest(Plane plane) const;
  /// Of all planes that are on the device.
  std::uint64_t device_bytes() const;

private:
  enum class Where : std::uint8_t { device, host, nowhere };
  struct PlaneMemory {
    net::PageBlock device;
    net::MemoryCharge charge; ///< while it is there
    net::PageBlock host;      ///< from the first offload on
    bool host_is_current = false;
    Where where = Where::device;
    std::int64_t size = 0; ///< elements

    void move_to(Where there);
  };
  struct Window {
    AlignedFloats floats;
    std::int64_t size = 0;

    void allocate(std::int64_t count, const net::BlockMemory* memory);
  };
  void allocate(Plane plane, std::int64_t count);
  const PlaneMemory& memory_of(Plane plane) const;
  PlaneMemory& memory_of(Plane plane);

  std::vector<ParameterShape> shapes_;
  std::vector<std::int64_t> offsets_;
  bool trainable_ = false;
  const net::BlockMemory* memory_; ///< of the device; null: the system's
  net::PageSharing sharing_ = net::PageSharing::by_descriptor;
  PlaneMemory planes_[num_planes];
  Window windows_[2]; ///< of weight and grad; empty: the plane is its window
};

} // namespace troupe::models
