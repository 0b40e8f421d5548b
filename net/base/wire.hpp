// The frames of the data plane: 16 bytes of prelude (magic, header bytes,
// payload bytes, little-endian), a msgpack header, raw payload bytes. The
// decoder trusts nothing: sizes are checked before anything is allocated, and a
// header that is not exactly one known message is a WireError.
#pragma once

#include "config/base/dtype.hpp"
#include "config/base/error.hpp"
#include "config/base/ids.hpp"

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

/// A peer sent something that is not a valid frame; close the connection.
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

/// First frame of a connection.
struct Hello {
  std::uint32_t protocol = kWireProtocol;
  std::string token;
  WorkerId from;
  std::string group;      ///< non-empty: a socket for this collective group
  std::uint32_t rank = 0; ///< sender's rank in that group
};
struct Welcome {};
struct PullRows {
  std::uint64_t request = 0;
  Incarnation incarnation;
  StepId step;
  std::vector<std::string> keys;
  std::vector<SampleId> samples;
};
/// Reply to PullRows; payload: the columns' data one after another.
struct RowsReply {
  struct ColumnHead {
    std::string key;
    DType dtype = DType::f32;
    std::vector<std::uint32_t> lengths;
  };
  std::uint64_t request = 0;
  std::vector<ColumnHead> columns;
};
/// Runs of bytes at a fixed stride: the columns of a matrix.
struct MemoryRuns {
  std::uint64_t offset_bytes = 0; ///< offset of the first run
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
/// Reply to PullMemory; payload: the bytes, run by run.
struct MemoryReply {
  std::uint64_t request = 0;
};
/// Refusal of a request; 0: of the whole connection.
struct Refusal {
  std::uint64_t request = 0;
  Failure failure;
};

using Message = std::variant<Hello, Welcome, PullRows, RowsReply, PullMemory,
                             MemoryReply, Refusal>;

/// Encodes prelude and header of a frame with a payload of `payload_bytes`
/// bytes, reusing the memory of `reused`.
std::string encode_frame(const Message& message, std::uint64_t payload_bytes,
                         std::string reused = {});
/// Decodes a prelude. Throws WireError for another magic, or sizes above
/// `limits`.
Prelude decode_prelude(std::span<const std::byte, kPreludeBytes> bytes,
                       const FrameLimits& limits);
/// Decodes a header; lists of runs reuse the memory of `reused`. Throws
/// WireError.
Message decode_header(std::span<const std::byte> bytes, Message reused = {});

/// Compares in a time that does not tell where the first difference is.
bool same_token(const std::string& a, const std::string& b) noexcept;

} // namespace troupe::net
