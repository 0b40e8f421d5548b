// A key names a value of a sample and gives its type. Keys are the dataflow: a
// call that reads a key waits for the one call that writes it; keys that no
// call writes come from the data set.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace troupe {

/// One value per sample, or one per token.
enum class Per : std::uint8_t { sample, token };
inline constexpr Per per_sample = Per::sample;
inline constexpr Per per_token = Per::token;

enum class KeyType : std::uint8_t { f32, i32, u8, text };

namespace detail {

template <class T>
constexpr bool is_number_of_key
  = std::is_same_v<
      T,
      float> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint8_t>;

template <class T>
constexpr KeyType key_type() {
  if constexpr (std::is_same_v<T, float>)
    return KeyType::f32;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return KeyType::i32;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return KeyType::u8;
  else
    return KeyType::text;
}

} // namespace detail

template <class T, Per P = per_sample>
struct Key {
  static_assert(detail::is_number_of_key<
                  T> || (std::is_same_v<T, std::string> && P == per_sample),
                "a key holds float, std::int32_t or std::uint8_t, or one "
                "std::string a sample");
  /// Type that readers get: a number, a text, or a span over the tokens.
  using Value = std::conditional_t<
    P == per_token, std::span<const T>,
    std::conditional_t<std::is_same_v<T, std::string>, const std::string&, T>>;

  constexpr explicit Key(const char* key_name) : name(key_name) {}
  const char* name;
};

/// A key without its types.
struct KeyInfo {
  std::string name;
  KeyType type = KeyType::f32;
  Per per = Per::sample;

  bool operator==(const KeyInfo&) const = default;
};

namespace detail {

/// Returns "b_" for a text key "b_response", which is decoded from
/// b_sequence_ids unless a call writes it; nullopt for other keys.
inline std::optional<std::string> response_prefix(const KeyInfo& key) {
  constexpr std::string_view word = "response";
  if (key.type != KeyType::text || !key.name.ends_with(word))
    return std::nullopt;
  return key.name.substr(0, key.name.size() - word.size());
}

} // namespace detail

template <class T, Per P>
KeyInfo info(Key<T, P> key) {
  return {key.name, detail::key_type<T>(), P};
}

/// Keys that built-in calls and data sets use.
namespace keys {
// texts of a row of the data set
inline constexpr Key<std::string> prompt{"prompt"};
inline constexpr Key<std::string> ground_truth{"ground_truth"};
inline constexpr Key<std::string> data_source{"data_source"};
inline constexpr Key<std::string> extra_info{"extra_info"};
/// Text appended to a conversation since the model's last turn.
inline constexpr Key<std::string> appended{".appended"};
/// Text of the model's last turn in a conversation (troupe/model.hpp).
inline constexpr Key<std::string> turn{"turn"};
/// The model's response, decoded from sequence_ids where loss_mask is 1. A
/// generate call with a prefix has PREFIXresponse.
inline constexpr Key<std::string> response{"response"};

inline constexpr Key<std::int32_t, per_token> prompt_ids{"prompt_ids"};
// written by generate: prompt and response; 1 on the model's own tokens
inline constexpr Key<std::int32_t, per_token> sequence_ids{"sequence_ids"};
inline constexpr Key<std::uint8_t, per_token> loss_mask{"loss_mask"};
inline constexpr Key<float, per_token> logprobs{"logprobs"};
inline constexpr Key<std::uint8_t> truncated{"truncated"};
// written by inference
inline constexpr Key<float, per_token> ref_logprobs{"ref_logprobs"};
inline constexpr Key<float, per_token> values{"values"};
inline constexpr Key<float> scores{"scores"};
// written by functions
inline constexpr Key<float, per_token> advantages{"advantages"};
inline constexpr Key<float, per_token> returns{"returns"};
} // namespace keys

} // namespace troupe
