// The frames of the data plane: 16 bytes of prelude (magic, header bytes,
// payload bytes, little-endian), a msgpack header, raw payload bytes. A decoder
// believes nothing: sizes are checked before anything is allocated, and a
// header that is not exactly one known message is a WireError.
#pragma once

#include "config/dtype.hpp"
#include "config/error.hpp"
#include "config/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace troupe::net {

inline constexpr std::uint32_t kWireMagic = 0x31505254; // "TRP1"
inline constexpr std::uint32_t kWireProtocol = 2;
inline constexpr std::size_t kPreludeBytes = 16;

/// A peer sent what is no frame of ours; close the connection.
class WireError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct Prelude {
  std::uint32_t header_bytes = 0;
  std::uint64_t payload_bytes = 0;
};
struct FrameLimits {
  std::uint32_t header_bytes = 0;
  std::uint64_t payload_bytes = 0;
};

/// The first frame of a connection.
struct Hello {
  std::uint32_t protocol = kWireProtocol;
  std::string token;
  WorkerId from;
  std::string group;      ///< not empty: a socket for this collective group
  std::uint32_t rank = 0; ///< of the sender in that group
};
struct Welcome {};
struct PullRows {
  std::uint64_t request = 0;
  Incarnation incarnation;
  StepId step;
  std::vector<std::string> keys;
  std::vector<SampleId> samples;
};
/// Payload: the columns' data one after the other.
struct RowsAnswer {
  struct ColumnHead {
    std::string key;
    DType dtype = DType::f32;
    std::vector<std::uint32_t> lengths;
  };
  std::uint64_t request = 0;
  std::vector<ColumnHead> columns;
};
/// Runs of bytes, equally far apart: the columns of a matrix.
struct MemoryRuns {
  std::uint64_t offset_bytes = 0; ///< of the first
  std::uint64_t run_bytes = 0;
  std::uint64_t runs = 1;
  std::uint64_t stride_bytes = 0;

  auto operator<=>(const MemoryRuns&) const = default;
};
struct PullMemory {
  std::uint64_t request = 0;
  Incarnation incarnation;
  std::uint64_t id = 0;
  std::vector<MemoryRuns> parts;
};
/// Payload: the bytes, run after run.
struct MemoryAnswer {
  std::uint64_t request = 0;
};
/// Request 0: the connection as a whole is refused.
struct Refusal {
  std::uint64_t request = 0;
  Failure failure;
};

using Message = std::variant<Hello, Welcome, PullRows, RowsAnswer, PullMemory,
                             MemoryAnswer, Refusal>;

/// Prelude and header of a frame whose payload has `payload_bytes` bytes, in
/// the memory of `reused`.
std::string encode_frame(const Message& message, std::uint64_t payload_bytes,
                         std::string reused = {});
/// Throws WireError: another magic, or sizes above `limits`.
Prelude decode_prelude(std::span<const std::byte, kPreludeBytes> bytes,
                       const FrameLimits& limits);
/// Lists of runs go to the memory of `reused`'s. Throws WireError.
Message decode_header(std::span<const std::byte> bytes, Message reused = {});

/// Compares in constant time.
bool same_token(const std::string& a, const std::string& b) noexcept;

} // namespace troupe::net
