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

using Packer = msgpack::packer<msgpack::sbuffer>;
using Field = msgpack::object;

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

template <class T>
std::vector<T> numbers_of(const Field& field) {
  if (field.type != msgpack::type::BIN || field.via.bin.size % sizeof(T) != 0)
    wire_fail("expected a list of numbers");
  std::vector<T> numbers(field.via.bin.size / sizeof(T));
  if (!numbers.empty())
    std::memcpy(static_cast<void*>(numbers.data()), field.via.bin.ptr,
                field.via.bin.size);
  return numbers;
}

std::string text_of(const Field& field) {
  if (field.type != msgpack::type::STR || field.via.str.size > kMaxWireText)
    wire_fail("expected a short text");
  return {field.via.str.ptr, field.via.str.size};
}

std::uint64_t number_of(const Field& field, std::uint64_t max = UINT64_MAX) {
  if (field.type != msgpack::type::POSITIVE_INTEGER || field.via.u64 > max)
    wire_fail("expected a number up to " + std::to_string(max));
  return field.via.u64;
}

template <class IdType>
IdType id_of(const Field& field) {
  return IdType(number_of(field, UINT32_MAX));
}

std::span<const Field> list_of(const Field& field) {
  if (field.type != msgpack::type::ARRAY)
    wire_fail("expected a list");
  return {field.via.array.ptr, field.via.array.size};
}

DType dtype_of(const Field& field) {
  return static_cast<DType>(
    number_of(field, static_cast<std::uint64_t>(DType::f64)));
}

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

void pack_fields(Packer& out, const PullMemory& m) {
  out.pack_array(5);
  out.pack(4).pack(m.request).pack(m.incarnation.value).pack(m.id);
  pack_numbers(out, m.parts);
}

void pack_fields(Packer& out, const MemoryAnswer& m) {
  out.pack_array(2);
  out.pack(5).pack(m.request);
}

void pack_fields(Packer& out, const Refusal& m) {
  out.pack_array(6);
  out.pack(6).pack(m.request);
  out.pack(static_cast<std::uint32_t>(m.failure.code));
  for (const std::string* text :
       {&m.failure.who, &m.failure.what, &m.failure.cause})
    out.pack(text->substr(0, kMaxWireText));
}

Message read_hello(std::span<const Field> f) {
  return Hello{static_cast<std::uint32_t>(number_of(f[1], UINT32_MAX)),
               text_of(f[2]), id_of<WorkerId>(f[3]), text_of(f[4]),
               static_cast<std::uint32_t>(number_of(f[5], UINT32_MAX))};
}

Message read_pull_rows(std::span<const Field> f) {
  PullRows message{number_of(f[1]),
                   id_of<Incarnation>(f[2]),
                   id_of<StepId>(f[3]),
                   {},
                   numbers_of<SampleId>(f[5])};
  for (const Field& key : list_of(f[4]))
    message.keys.push_back(text_of(key));
  return message;
}

Message read_rows_answer(std::span<const Field> f) {
  RowsAnswer message{number_of(f[1]), {}};
  for (const Field& column : list_of(f[2])) {
    std::span<const Field> parts = list_of(column);
    if (parts.size() != 3)
      wire_fail("expected a column of 3 fields");
    message.columns.push_back({text_of(parts[0]), dtype_of(parts[1]),
                               numbers_of<std::uint32_t>(parts[2])});
  }
  return message;
}

Message read_pull_memory(std::span<const Field> f) {
  return PullMemory{number_of(f[1]), id_of<Incarnation>(f[2]), number_of(f[3]),
                    numbers_of<MemoryRuns>(f[4])};
}

Message read_refusal(std::span<const Field> f) {
  const auto code
    = static_cast<Errc>(number_of(f[2], static_cast<std::uint64_t>(Errc::bug)));
  return Refusal{number_of(f[1]),
                 {code, text_of(f[3]), text_of(f[4]), text_of(f[5])}};
}

Message read_message(const Field& root) {
  std::span<const Field> fields = list_of(root);
  if (fields.empty())
    wire_fail("empty");
  constexpr std::size_t sizes[] = {6, 1, 6, 3, 5, 2, 6};
  const std::uint64_t kind = number_of(fields[0], std::size(sizes) - 1);
  if (fields.size() != sizes[kind])
    wire_fail("kind " + std::to_string(kind) + " with "
              + std::to_string(fields.size()) + " fields");
  switch (kind) {
  case 0:
    return read_hello(fields);
  case 1:
    return Welcome{};
  case 2:
    return read_pull_rows(fields);
  case 3:
    return read_rows_answer(fields);
  case 4:
    return read_pull_memory(fields);
  case 5:
    return MemoryAnswer{number_of(fields[1])};
  default:
    return read_refusal(fields);
  }
}

} // namespace

std::string encode_frame(const Message& message, std::uint64_t payload_bytes) {
  msgpack::sbuffer header;
  Packer packer(header);
  std::visit([&](const auto& m) { pack_fields(packer, m); }, message);
  const auto header_bytes = static_cast<std::uint32_t>(header.size());
  std::string frame(kPreludeBytes + header.size(), '\0');
  std::memcpy(frame.data(), &kWireMagic, 4);
  std::memcpy(frame.data() + 4, &header_bytes, 4);
  std::memcpy(frame.data() + 8, &payload_bytes, 8);
  std::memcpy(frame.data() + kPreludeBytes, header.data(), header.size());
  return frame;
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

Message decode_header(std::span<const std::byte> bytes) {
  // Texts and number lists stay where they are until they were checked.
  const auto refer
    = [](msgpack::type::object_type, std::size_t, void*) { return true; };
  const msgpack::unpack_limit limit(kMaxWireNames, 0, bytes.size(),
                                    bytes.size(), 0, kMaxHeaderDepth);
  try {
    std::size_t used = 0;
    const msgpack::object_handle handle
      = msgpack::unpack(reinterpret_cast<const char*>(bytes.data()),
                        bytes.size(), used, refer, nullptr, limit);
    if (used != bytes.size())
      wire_fail("bytes after the end");
    return read_message(handle.get());
  } catch (const msgpack::unpack_error& error) {
    wire_fail(error.what());
  }
}

bool same_token(const std::string& a, const std::string& b) noexcept {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

} // namespace troupe::net
