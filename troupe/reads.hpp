// The keys that a call reads and writes, and the values that it carries from
// step to step.
#pragma once

#include "troupe/carried.hpp"
#include "troupe/key.hpp"

#include <tuple>
#include <vector>

namespace troupe {

template <class K>
constexpr bool is_key = false;
template <class T, Per P>
constexpr bool is_key<Key<T, P>> = true;
template <class K>
constexpr bool is_carried = false;
template <class T>
constexpr bool is_carried<Carried<T>> = true;

namespace detail {

/// Returns the infos of the entries that are keys (KeyInfo) or carried values
/// (CarriedInfo).
template <class Info, class... Ks>
std::vector<Info> infos_of(const std::tuple<Ks...>& keys) {
  std::vector<Info> infos;
  [[maybe_unused]] const auto add = [&](const auto& key) {
    if constexpr (std::is_same_v<decltype(info(key)), Info>)
      infos.push_back(info(key));
  };
  std::apply([&](const auto&... key) { (add(key), ...); }, keys);
  return infos;
}

template <class... Ks>
std::vector<KeyInfo> key_infos(const std::tuple<Ks...>& keys) {
  static_assert((is_key<Ks> && ...),
                "a carried value changes once a step: batch() has it");
  return infos_of<KeyInfo>(keys);
}

/// True for keys that a loss may read, which are numbers; carried values are
/// rejected elsewhere.
template <class K>
constexpr bool is_loss_key = true;
template <Per P>
constexpr bool is_loss_key<Key<std::string, P>> = false;

} // namespace detail

template <class... Ks>
struct Reads {
  std::tuple<Ks...> keys;
  std::vector<KeyInfo> infos() const {
    return detail::key_infos(keys);
  }
};
template <class... Ks>
struct Writes {
  std::tuple<Ks...> keys;
  std::vector<KeyInfo> infos() const {
    return detail::key_infos(keys);
  }
};

template <class... Ks>
requires((is_key<Ks> || is_carried<Ks>)&&...) Reads<Ks...> reads(Ks... keys) {
  return {std::tuple{keys...}};
}
template <class... Ks>
requires((is_key<Ks> || is_carried<Ks>)&&...) Writes<Ks...> writes(Ks... keys) {
  return {std::tuple{keys...}};
}

// Overloads for arguments that are not keys: they turn the compiler's error
// into a sentence.
template <class... Ks>
requires(!((is_key<Ks> || is_carried<Ks>)&&...)) Reads<> reads(Ks...) {
  static_assert(sizeof...(Ks) == 0,
                "reads() takes keys such as constexpr troupe::Key<float> "
                "score{\"score\"}, not their names");
  return {};
}
template <class... Ks>
requires(!((is_key<Ks> || is_carried<Ks>)&&...)) Writes<> writes(Ks...) {
  static_assert(sizeof...(Ks) == 0,
                "writes() takes keys such as constexpr troupe::Key<float> "
                "score{\"score\"}, not their names");
  return {};
}

} // namespace troupe
