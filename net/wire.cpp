#include "net/wire.hpp"

#include "net/defaults.hpp"

#include <msgpack.hpp>

#include <bit>
#include <cstring>
#include <type_traits>

namespace troupe::net {

static_assert(std::endian::native == std::endian::little,
              "preludes and number lists travel in host order");

namespace {

/// Names in one header: keys of rows, far above any workflow's.
constexpr std::size_t kMaxWireNames = 1024;
constexpr std::size_t kMaxWireText = 4096; ///< characters of one name

/// Where a header is packed to.
struct Appending {
  std::string& text;
  void write(const char* bytes, std::size_t size) {
    text.append(bytes, size);
  }
};
using Packer = msgpack::packer<Appending>;

[[noreturn]] void wire_fail(const std::string& what) {
  throw WireError("malformed header: " + what);
}

template <class T>
void pack_numbers(Packer& out, const std::vector<T>& numbers) {
  static_assert(std::has_unique_object_representations_v<T>);
  const auto bytes = static_cast<std::uint32_t>(numbers.size() * sizeof(T));
  out.pack_bin(bytes);
  out.pack_bin_body(reinterpret_cast<const char*>(numbers.data()), bytes);
}

/// First bytes of one kind of value: [fixed, fixed_end) hold the number (or
/// size) themselves, those from `coded` on say in how many bytes it follows.
struct Kind {
  const char* name;
  unsigned fixed, fixed_end, coded, coded_end, fewest_bytes;
};
constexpr Kind kNumber{"a number", 0x00, 0x80, 0xcc, 0xd0, 1};
constexpr Kind kText{"a text", 0xa0, 0xc0, 0xd9, 0xdc, 1};
constexpr Kind kBytes{"a list of numbers", 0, 0, 0xc4, 0xc7, 1};
constexpr Kind kList{"a list", 0x90, 0xa0, 0xdc, 0xde, 2};

/// The values of a header one after the other. msgpack's own reader allocates
/// with every header; this one only what the caller keeps, and only of bytes
/// that are there.
class Fields {
public:
  explicit Fields(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool at_end() const {
    return rest_.empty();
  }
  std::uint64_t number(std::uint64_t max = UINT64_MAX) {
    const std::uint64_t value = read(kNumber);
    if (value > max)
      wire_fail("expected a number up to " + std::to_string(max));
    return value;
  }
  std::uint32_t number32() {
    return static_cast<std::uint32_t>(number(UINT32_MAX));
  }
  template <class IdType>
  IdType id() {
    return IdType(number32());
  }
  std::string text() {
    const std::uint64_t size = read(kText);
    if (size > kMaxWireText)
      wire_fail("expected a short text");
    const auto bytes = take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// How many fields follow that are the list's.
  std::uint64_t list() {
    const std::uint64_t size = read(kList);
    if (size > kMaxWireNames)
      wire_fail("expected a short list");
    return size;
  }
  template <class T>
  std::vector<T> numbers(std::vector<T> reused = {}) {
    const auto bytes = take(read(kBytes));
    if (bytes.size() % sizeof(T) != 0)
      wire_fail("expected a list of whole numbers");
    reused.resize(bytes.size() / sizeof(T));
    if (!reused.empty())
      std::memcpy(static_cast<void*>(reused.data()), bytes.data(),
                  bytes.size());
    return reused;
  }

private:
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > rest_.size())
      wire_fail("it ends too early");
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::uint64_t read(const Kind& kind) {
    const auto first = std::to_integer<unsigned>(take(1)[0]);
    if (first >= kind.fixed && first < kind.fixed_end)
      return first - kind.fixed;
    if (first < kind.coded || first >= kind.coded_end)
      wire_fail(std::string("expected ") + kind.name);
    std::uint64_t value = 0;
    for (const std::byte byte :
         take(std::uint64_t{kind.fewest_bytes} << (first - kind.coded)))
      value = value << 8 | std::to_integer<std::uint64_t>(byte);
    return value;
  }

  std::span<const std::byte> rest_;
};

// -- one pack and one read for each message, fields in the same order ---------

void pack_fields(Packer& out, const Hello& m) {
  out.pack_array(6);
  out.pack(0).pack(m.protocol).pack(m.token).pack(m.from.value);
  out.pack(m.group).pack(m.rank);
}

void pack_fields(Packer& out, const Welcome&) {
  out.pack_array(1);
  out.pack(1);
}

void pack_fields(Packer& out, const PullRows& m) {
  out.pack_array(6);
  out.pack(2).pack(m.request).pack(m.incarnation.value).pack(m.step.value);
  out.pack(m.keys);
  pack_numbers(out, m.samples);
}

void pack_fields(Packer& out, const RowsAnswer& m) {
  out.pack_array(3);
  out.pack(3).pack(m.request);
  out.pack_array(static_cast<std::uint32_t>(m.columns.size()));
  for (const RowsAnswer::ColumnHead& column : m.columns) {
    out.pack_array(3);
    out.pack(column.key).pack(static_cast<std::uint32_t>(column.dtype));
    pack_numbers(out, column.lengths);
  }
}

// Numbers of fixed size: a later header needs no more memory than an earlier.
void pack_fields(Packer& out, const PullMemory& m) {
  out.pack_array(5);
  out.pack(4).pack_fix_uint64(m.request);
  out.pack(m.incarnation.value).pack(m.id);
  pack_numbers(out, m.parts);
}

void pack_fields(Packer& out, const MemoryAnswer& m) {
  out.pack_array(2);
  out.pack(5).pack_fix_uint64(m.request);
}

void pack_fields(Packer& out, const Refusal& m) {
  out.pack_array(6);
  out.pack(6).pack(m.request);
  out.pack(static_cast<std::uint32_t>(m.failure.code));
  for (const std::string* text :
       {&m.failure.who, &m.failure.what, &m.failure.cause})
    out.pack(text->substr(0, kMaxWireText));
}

// Braces read their fields from left to right.
Message read_hello(Fields& f) {
  return Hello{f.number32(), f.text(), f.id<WorkerId>(), f.text(),
               f.number32()};
}

Message read_pull_rows(Fields& f) {
  PullRows message{f.number(), f.id<Incarnation>(), f.id<StepId>(), {}, {}};
  for (auto keys = f.list(); keys > 0; --keys)
    message.keys.push_back(f.text());
  message.samples = f.numbers<SampleId>();
  return message;
}

Message read_rows_answer(Fields& f) {
  RowsAnswer message{f.number(), {}};
  for (auto columns = f.list(); columns > 0; --columns) {
    if (f.list() != 3)
      wire_fail("expected a column of 3 fields");
    message.columns.push_back(
      {f.text(),
       static_cast<DType>(f.number(static_cast<std::uint64_t>(DType::f64))),
       f.numbers<std::uint32_t>()});
  }
  return message;
}

Message read_pull_memory(Fields& f, Message reused) {
  auto* old = std::get_if<PullMemory>(&reused);
  return PullMemory{f.number(), f.id<Incarnation>(), f.number(),
                    f.numbers(old != nullptr ? std::move(old->parts)
                                             : std::vector<MemoryRuns>{})};
}

Message read_refusal(Fields& f) {
  const auto request = f.number();
  const auto code
    = static_cast<Errc>(f.number(static_cast<std::uint64_t>(Errc::bug)));
  return Refusal{request, {code, f.text(), f.text(), f.text()}};
}

Message read_message(Fields& f, Message reused) {
  constexpr std::size_t sizes[] = {6, 1, 6, 3, 5, 2, 6};
  const std::uint64_t size = f.list();
  const std::uint64_t kind = f.number(std::size(sizes) - 1);
  if (size != sizes[kind])
    wire_fail("kind " + std::to_string(kind) + " with " + std::to_string(size)
              + " fields");
  switch (kind) {
  case 0:
    return read_hello(f);
  case 1:
    return Welcome{};
  case 2:
    return read_pull_rows(f);
  case 3:
    return read_rows_answer(f);
  case 4:
    return read_pull_memory(f, std::move(reused));
  case 5:
    return MemoryAnswer{f.number()};
  default:
    return read_refusal(f);
  }
}

} // namespace

std::string encode_frame(const Message& message, std::uint64_t payload_bytes,
                         std::string reused) {
  reused.assign(kPreludeBytes, '\0');
  Appending frame{reused};
  Packer packer(frame);
  std::visit([&](const auto& m) { pack_fields(packer, m); }, message);
  const auto header_bytes
    = static_cast<std::uint32_t>(reused.size() - kPreludeBytes);
  std::memcpy(reused.data(), &kWireMagic, 4);
  std::memcpy(reused.data() + 4, &header_bytes, 4);
  std::memcpy(reused.data() + 8, &payload_bytes, 8);
  return reused;
}

Prelude decode_prelude(std::span<const std::byte, kPreludeBytes> bytes,
                       const FrameLimits& limits) {
  std::uint32_t magic = 0;
  Prelude prelude;
  std::memcpy(&magic, bytes.data(), 4);
  std::memcpy(&prelude.header_bytes, bytes.data() + 4, 4);
  std::memcpy(&prelude.payload_bytes, bytes.data() + 8, 8);
  if (magic != kWireMagic)
    throw WireError("not a frame of ours");
  if (prelude.header_bytes > limits.header_bytes)
    throw WireError("header of " + std::to_string(prelude.header_bytes)
                    + " bytes, at most " + std::to_string(limits.header_bytes)
                    + " are allowed");
  if (prelude.payload_bytes > limits.payload_bytes)
    throw WireError("payload of " + std::to_string(prelude.payload_bytes)
                    + " bytes, at most " + std::to_string(limits.payload_bytes)
                    + " are allowed");
  return prelude;
}

Message decode_header(std::span<const std::byte> bytes, Message reused) {
  Fields fields(bytes);
  Message message = read_message(fields, std::move(reused));
  if (!fields.at_end())
    wire_fail("bytes after the end");
  return message;
}

bool same_token(const std::string& a, const std::string& b) noexcept {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

} // namespace troupe::net
