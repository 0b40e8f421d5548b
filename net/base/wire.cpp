#include "net/base/wire.hpp"

#include "net/base/defaults.hpp"

#include <msgpack.hpp>

#include <openssl/crypto.h>

#include <bit>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace troupe::net {

static_assert(std::endian::native == std::endian::little,
              "preludes and number lists travel in host order");

namespace {

/// Limit of names in one header: keys of rows, far above any workflow's.
constexpr std::size_t kMaxWireNames = 1024;
constexpr std::size_t kMaxWireText = 4096; ///< characters per name
constexpr std::size_t kMaxWireDepth = 3;   ///< fields, columns, their fields

/// Output of packing a header.
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

/// Reads the values of a list in order.
class Fields {
public:
  explicit Fields(std::span<const msgpack::object> list) : rest_(list) {}

  std::size_t size() const {
    return rest_.size();
  }
  std::uint64_t number(std::uint64_t max = UINT64_MAX) {
    const auto value = next(msgpack::type::POSITIVE_INTEGER).u64;
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
    const auto text = next(msgpack::type::STR).str;
    return {text.ptr, text.size};
  }
  Fields list() {
    const auto list = next(msgpack::type::ARRAY).array;
    return Fields({list.ptr, list.size});
  }
  template <class T>
  std::vector<T> numbers(std::vector<T> reused = {}) {
    const auto bytes = next(msgpack::type::BIN).bin;
    if (bytes.size % sizeof(T) != 0)
      wire_fail("expected a list of whole numbers");
    reused.resize(bytes.size / sizeof(T));
    if (!reused.empty())
      std::memcpy(static_cast<void*>(reused.data()), bytes.ptr, bytes.size);
    return reused;
  }

private:
  const msgpack::object::union_type& next(msgpack::type::object_type type) {
    if (rest_.empty() || rest_.front().type != type)
      wire_fail("a field is missing or of another kind");
    const auto& value = rest_.front().via;
    rest_ = rest_.subspan(1);
    return value;
  }

  std::span<const msgpack::object> rest_;
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

void pack_fields(Packer& out, const RowsReply& m) {
  out.pack_array(3);
  out.pack(3).pack(m.request);
  out.pack_array(static_cast<std::uint32_t>(m.columns.size()));
  for (const RowsReply::ColumnHead& column : m.columns) {
    out.pack_array(3);
    out.pack(column.key).pack(static_cast<std::uint32_t>(column.dtype));
    pack_numbers(out, column.lengths);
  }
}

// Packs numbers with a fixed size: a later header needs no more memory than an
// earlier one.
void pack_fields(Packer& out, const PullMemory& m) {
  out.pack_array(5);
  out.pack(4).pack_fix_uint64(m.request);
  out.pack(m.incarnation.value).pack(m.id);
  pack_numbers(out, m.parts);
}

void pack_fields(Packer& out, const MemoryReply& m) {
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

// braces read their fields from left to right
Message read_hello(Fields& f) {
  return Hello{f.number32(), f.text(), f.id<WorkerId>(), f.text(),
               f.number32()};
}

Message read_pull_rows(Fields& f) {
  PullRows message{f.number(), f.id<Incarnation>(), f.id<StepId>(), {}, {}};
  for (Fields keys = f.list(); keys.size() > 0;)
    message.keys.push_back(keys.text());
  message.samples = f.numbers<SampleId>();
  return message;
}

Message read_rows_reply(Fields& f) {
  RowsReply message{f.number(), {}};
  for (Fields columns = f.list(); columns.size() > 0;) {
    Fields column = columns.list();
    if (column.size() != 3)
      wire_fail("expected a column of 3 fields");
    message.columns.push_back({column.text(),
                               static_cast<DType>(column.number(
                                 static_cast<std::uint64_t>(DType::f64))),
                               column.numbers<std::uint32_t>()});
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
  const std::size_t size = f.size();
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
    return read_rows_reply(f);
  case 4:
    return read_pull_memory(f, std::move(reused));
  case 5:
    return MemoryReply{f.number()};
  default:
    return read_refusal(f);
  }
}

/// Parses one value, which is valid until the next call on this thread. The
/// parser is kept: headers no larger than earlier ones allocate nothing.
std::span<const msgpack::object> parse(std::string_view header) {
  thread_local msgpack::unpacker unpacker(
    [](msgpack::type::object_type, std::size_t, void*) { return true; },
    nullptr, MSGPACK_UNPACKER_INIT_BUFFER_SIZE,
    msgpack::unpack_limit(kMaxWireNames, 0, kMaxWireText, UINT32_MAX, 0,
                          kMaxWireDepth));
  unpacker.remove_nonparsed_buffer();
  unpacker.reset();
  unpacker.reset_zone();
  unpacker.set_referenced(false); // the last header's values may go
  unpacker.reserve_buffer(header.size());
  std::memcpy(unpacker.buffer(), header.data(), header.size());
  unpacker.buffer_consumed(header.size());
  if (!unpacker.parser::next())
    wire_fail("it ends too early");
  if (unpacker.nonparsed_size() > 0)
    wire_fail("bytes after the end");
  return {&unpacker.data(), 1};
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
  try {
    Fields header(
      parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    Fields fields = header.list();
    return read_message(fields, std::move(reused));
  } catch (const msgpack::unpack_error& error) {
    wire_fail(error.what());
  }
}

bool same_token(const std::string& a, const std::string& b) noexcept {
  return a.size() == b.size()
         && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace troupe::net
