#include "models/hf/safetensors_header.hpp"

#include "models/hf/safetensors.hpp"
#include "models/io/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace troupe::models::internal {

namespace {

using Fault = SafetensorsFault;

constexpr std::uint64_t max_header_bytes = 100'000'000; // the format's limit

constexpr std::array<std::pair<const char*, unsigned>, 22> dtype_bits{{
  {"F32", 32},        {"BF16", 16},       {"F16", 16},    {"F64", 64},
  {"I64", 64},        {"I32", 32},        {"I16", 16},    {"I8", 8},
  {"U64", 64},        {"U32", 32},        {"U16", 16},    {"U8", 8},
  {"BOOL", 8},        {"F8_E4M3", 8},     {"F8_E5M2", 8}, {"F8_E8M0", 8},
  {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"C64", 64},    {"F6_E2M3", 6},
  {"F6_E3M2", 6},     {"F4", 4},
}};

std::string tensor_label(const std::string& name) {
  constexpr std::size_t longest = 80;
  if (name.size() <= longest)
    return "tensor '" + name + "'";
  return "tensor '" + name.substr(0, longest) + "...'";
}

/// Fills a header from JSON events, so that the file cannot control what is
/// built: no depth, no duplicate and no field outside the format.
class HeaderSax : public nlohmann::json::json_sax_t {
public:
  SafetensorsHeader header;
  Fault fault = Fault::HeaderNotJson;
  std::string sentence = "the header is not JSON";

  bool null() override {
    return schema("null");
  }
  bool boolean(bool) override {
    return schema("a boolean");
  }
  bool number_integer(number_integer_t) override {
    return schema("a negative number");
  }
  bool number_float(number_float_t, const string_t& text) override {
    return schema("the number " + text.substr(0, 40));
  }
  bool binary(binary_t&) override {
    return schema("binary data");
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (state_ == State::shape)
      tensor_.shape.push_back(number);
    else if (state_ == State::offsets)
      offsets_.push_back(number);
    else
      return schema("the number " + std::to_string(number));
    return true;
  }
  bool string(string_t& text) override {
    if (state_ == State::metadata) {
      header.metadata[key_] = text;
    } else if (state_ == State::tensor && field_ == Field::dtype) {
      tensor_.dtype = text;
    } else {
      return schema("text");
    }
    return true;
  }
  bool start_object(std::size_t) override {
    if (state_ == State::before) {
      state_ = State::top;
    } else if (state_ == State::top) {
      state_ = key_ == "__metadata__" ? State::metadata : State::tensor;
      if (state_ == State::tensor)
        begin_tensor();
    } else {
      return schema("an object");
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (state_ == State::tensor && field_ == Field::shape)
      state_ = State::shape;
    else if (state_ == State::tensor && field_ == Field::offsets)
      state_ = State::offsets;
    else
      return schema("an array");
    return true;
  }
  bool end_array() override {
    state_ = State::tensor;
    return true;
  }
  bool end_object() override {
    const State ended = std::exchange(
      state_, state_ == State::top ? State::before : State::top);
    return ended == State::tensor ? end_tensor() : true;
  }
  bool key(string_t& text) override {
    if (state_ == State::tensor)
      return tensor_field(text);
    auto& seen = state_ == State::top ? names_ : metadata_names_;
    key_ = text;
    if (!seen.insert(text).second)
      return fail(Fault::DuplicateName, tensor_label(text) + " occurs twice");
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return fail(Fault::HeaderNotJson, "the header is not JSON (at byte "
                                        + std::to_string(position) + ")");
  }

private:
  enum class State { before, top, metadata, tensor, shape, offsets };
  enum class Field { none, dtype, shape, offsets };

  bool fail(Fault what, std::string text) {
    fault = what;
    sentence = std::move(text);
    return false;
  }

  bool schema(const std::string& got) {
    switch (state_) {
    case State::before:
      return fail(Fault::HeaderSchema,
                  "expected an object as header, got " + got);
    case State::top:
      return fail(Fault::HeaderSchema,
                  tensor_label(key_) + ": expected an object, got " + got);
    case State::metadata:
      return fail(Fault::HeaderSchema,
                  "__metadata__: expected text, got " + got);
    case State::shape:
      return fail(Fault::HeaderSchema,
                  tensor_label(key_) + ": shape: expected counts, got " + got);
    case State::offsets:
      return fail(Fault::HeaderSchema,
                  tensor_label(key_) + ": data_offsets: expected counts, got "
                    + got);
    case State::tensor:
      break;
    }
    return fail(Fault::HeaderSchema,
                tensor_label(key_) + ": " + field_name() + ": got " + got);
  }

  const char* field_name() const {
    switch (field_) {
    case Field::dtype:
      return "dtype: expected text";
    case Field::shape:
      return "shape: expected a list of counts";
    case Field::offsets:
      return "data_offsets: expected a list of two counts";
    case Field::none:
      break;
    }
    return "expected a field";
  }

  void begin_tensor() {
    tensor_ = {};
    tensor_.name = key_;
    offsets_.clear();
    has_ = {};
    field_ = Field::none;
  }

  bool tensor_field(const std::string& text) {
    field_ = text == "dtype"          ? Field::dtype
             : text == "shape"        ? Field::shape
             : text == "data_offsets" ? Field::offsets
                                      : Field::none;
    if (field_ == Field::none)
      return fail(Fault::HeaderSchema, tensor_label(key_) + ": unknown field '"
                                         + text.substr(0, 40) + "'");
    if (std::exchange(has_[static_cast<std::size_t>(field_)], true))
      return fail(Fault::DuplicateName,
                  tensor_label(key_) + ": '" + text + "' occurs twice");
    return true;
  }

  bool end_tensor() {
    constexpr std::array<const char*, 4> fields{"", "dtype", "shape",
                                                "data_offsets"};
    for (std::size_t i = 1; i < fields.size(); ++i)
      if (!has_[i])
        return fail(Fault::HeaderSchema,
                    tensor_label(key_) + ": no '" + fields[i] + "'");
    if (offsets_.size() != 2)
      return fail(Fault::HeaderSchema,
                  tensor_label(key_)
                    + ": data_offsets: expected two numbers, got "
                    + std::to_string(offsets_.size()));
    tensor_.begin = offsets_[0];
    tensor_.end = offsets_[1];
    header.tensors.push_back(std::move(tensor_));
    return true;
  }

  State state_ = State::before;
  Field field_ = Field::none;
  std::array<bool, 4> has_{}; ///< indexed by Field
  std::string key_;           ///< tensor or metadata name being read
  HeaderTensor tensor_;
  std::vector<std::uint64_t> offsets_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_names_;
};

[[noreturn]] void reject(const std::string& file, Fault fault,
                         const std::string& sentence) {
  throw SafetensorsError(file, fault, sentence);
}

/// Returns the bytes required by the tensor's type and shape; nullopt on
/// overflow.
std::optional<std::uint64_t> needed_bytes(const HeaderTensor& tensor) {
  std::uint64_t count = 1;
  for (const std::uint64_t dim : tensor.shape)
    if (__builtin_mul_overflow(count, dim, &count))
      return std::nullopt;
  std::uint64_t bits = 0;
  if (__builtin_mul_overflow(count, bits_of_dtype(tensor.dtype), &bits))
    return std::nullopt;
  return bits / 8 + (bits % 8 != 0 ? 1 : 0);
}

void check_tensor(const HeaderTensor& tensor, const std::string& file) {
  const std::string who = tensor_label(tensor.name);
  if (bits_of_dtype(tensor.dtype) == 0)
    reject(file, Fault::UnknownDtype,
           who + ": unknown dtype '" + tensor.dtype.substr(0, 40) + "'");
  if (tensor.begin > tensor.end)
    reject(file, Fault::OffsetsInvalid, who + ": its end is before its begin");
  const auto bytes = needed_bytes(tensor);
  if (!bytes)
    reject(file, Fault::ShapeOverflow,
           who + ": the size of its shape overflows 64 bits");
  if (*bytes != tensor.end - tensor.begin)
    reject(file, Fault::SizeMismatch,
           who + ": shape and dtype need " + std::to_string(*bytes)
             + " bytes, its offsets span "
             + std::to_string(tensor.end - tensor.begin));
}

void check_tiling(const SafetensorsHeader& header, std::uint64_t data_bytes,
                  const std::string& file) {
  std::uint64_t reached = 0;
  for (const HeaderTensor& tensor : header.tensors) {
    if (tensor.begin != reached)
      reject(file, Fault::OffsetsInvalid,
             tensor_label(tensor.name) + " begins at byte "
               + std::to_string(tensor.begin) + " of the data, expected "
               + std::to_string(reached)
               + (tensor.begin > reached ? " (a hole)" : " (an overlap)"));
    reached = tensor.end;
  }
  if (reached != data_bytes)
    reject(file, Fault::DataLength,
           "the tensors need " + std::to_string(reached)
             + " bytes of data, the file has " + std::to_string(data_bytes));
}

std::string_view header_text(std::span<const std::byte> bytes,
                             const std::string& file) {
  if (bytes.size() < 8)
    reject(file, Fault::HeaderTooSmall,
           "the file has " + std::to_string(bytes.size())
             + " bytes; a safetensors file begins with an 8-byte length");
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > max_header_bytes)
    reject(file, Fault::HeaderTooLarge,
           "the declared header length " + std::to_string(length)
             + " exceeds the limit of 100000000 bytes");
  if (length > bytes.size() - 8)
    reject(file, Fault::HeaderLength,
           "the declared header length " + std::to_string(length)
             + " exceeds the file of " + std::to_string(bytes.size())
             + " bytes");
  return {reinterpret_cast<const char*>(bytes.data()) + 8, length};
}

} // namespace

unsigned bits_of_dtype(const std::string& dtype) noexcept {
  for (const auto& [name, bits] : dtype_bits)
    if (dtype == name)
      return bits;
  return 0;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> bytes,
                                           const std::string& file) {
  const std::string_view text = header_text(bytes, file);
  if (const auto bad = first_invalid_utf8(text); bad != std::string_view::npos)
    reject(file, Fault::HeaderNotUtf8,
           "the header is not UTF-8 (at byte " + std::to_string(bad) + ")");
  // the JSON library treats a NUL as the end and skips a byte-order mark
  if (text.find('\0') != std::string_view::npos
      || text.substr(0, 3) == "\xEF\xBB\xBF")
    reject(file, Fault::HeaderNotJson, "the header is not JSON");
  HeaderSax sax;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &sax))
    reject(file, sax.fault, sax.sentence);
  SafetensorsHeader header = std::move(sax.header);
  header.data_offset = 8 + text.size();
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const HeaderTensor& a, const HeaderTensor& b) {
              return std::tie(a.begin, a.end, a.name)
                     < std::tie(b.begin, b.end, b.name);
            });
  for (const HeaderTensor& tensor : header.tensors)
    check_tensor(tensor, file);
  check_tiling(header, bytes.size() - header.data_offset, file);
  return header;
}

} // namespace troupe::models::internal
