// Turns plain functions over values into functions over samples: reads()
// supplies their arguments, writes() takes their results.
#pragma once

#include "troupe/reads.hpp"
#include "troupe/sample.hpp"

#include <functional>
#include <tuple>
#include <type_traits>

namespace troupe {

class Model; // troupe/model.hpp

namespace detail {

/// A function over the samples of one unit: a sample, the group of a prompt, or
/// the batch.
using SampleFunction = std::function<void(std::span<Sample>, CarriedValues&)>;

/// Result types that a function returns for a key, for one sample and for
/// several.
template <class K>
struct Result;
template <class T, Per P>
struct Result<Key<T, P>> {
  using One = std::conditional_t<P == per_token, std::vector<T>, T>;
  using All = std::vector<One>;
  /// Argument type of a function over several samples.
  using Argument = std::span<
    const std::conditional_t<P == per_token, std::span<const T>, T>>;
  using Column
    = std::vector<std::conditional_t<P == per_token, std::span<const T>, T>>;
};
template <class T>
struct Result<Carried<T>> {
  using One = T;
  using All = T;
  using Argument = T;
};

template <class... Ks>
struct Results {
  using One = std::tuple<typename Result<Ks>::One...>;
  using All = std::tuple<typename Result<Ks>::All...>;
};
template <class K>
struct Results<K> {
  using One = typename Result<K>::One;
  using All = typename Result<K>::All;
};

/// True for a factory of a user-defined actor, which returns a CAF behavior.
template <class F>
constexpr bool is_user_actor = false;
template <class R, class... A>
constexpr bool is_user_actor<R (*)(A...)> = requires {
  typename R::signatures;
};

/// Returns the factory's address as its identity; null if F is not a function.
template <class F>
const void* factory_id(F factory) {
  if constexpr (std::is_pointer_v<F>)
    return reinterpret_cast<const void*>(factory);
  else
    return nullptr;
}

/// True for a factory that takes a Model, with which its actor leads
/// conversations.
template <class F>
constexpr bool leads_conversations = false;
template <class R, class... A>
constexpr bool
  leads_conversations<R (*)(A...)> = (std::is_same_v<A, Model> || ...);

template <class T, class K, std::size_t... I>
void set_results(Sample& sample, const std::tuple<K>& keys, const T& value,
                 std::index_sequence<I...>) {
  sample.set(std::get<0>(keys), value);
}
template <class T, class... Ks, std::size_t... I>
requires(sizeof...(Ks)
         != 1) void set_results(Sample& sample, const std::tuple<Ks...>& keys,
                                const T& values, std::index_sequence<I...>) {
  (sample.set(std::get<I>(keys), std::get<I>(values)), ...);
}

template <class F, class... R, class... W>
SampleFunction over_each(F f, Reads<R...> reads, Writes<W...> writes) {
  constexpr bool fits = (is_key<R> && ...) && (is_key<W> && ...)
                        && std::is_invocable_r_v<typename Results<W...>::One, F,
                                                 typename R::Value...>;
  static_assert(
    fits,
    "each() needs a function from the values of reads() to that of writes() (a "
    "std::tuple of several), or a user-defined actor's factory");
  if constexpr (!fits) // makes the sentence above the only error
    return {};
  else
    return [=](std::span<Sample> samples, CarriedValues&) {
      for (Sample& sample : samples) {
        const auto result = std::apply(
          [&](const auto&... key) { return f(sample[key]...); }, reads.keys);
        set_results(sample, writes.keys, result,
                    std::index_sequence_for<W...>{});
      }
    };
}

template <class K>
typename Result<K>::Column column(std::span<const Sample> samples,
                                  const CarriedValues&, K key) {
  typename Result<K>::Column values;
  for (const Sample& sample : samples)
    values.push_back(sample[key]);
  return values;
}
template <class T>
T column(std::span<const Sample>, const CarriedValues& carried,
         Carried<T> value) {
  const auto at = carried.find(value.name);
  return at == carried.end() ? value.initial : static_cast<T>(at->second);
}

template <class T>
void set_column(std::span<Sample>, CarriedValues& carried, Carried<T> value,
                std::type_identity_t<T> now) {
  carried[value.name] = static_cast<double>(now);
}
template <class T, Per P, class V>
void set_column(std::span<Sample> samples, CarriedValues&, Key<T, P> key,
                const V& values) {
  if (values.size() != samples.size())
    throw std::length_error(std::string(key.name) + " got "
                            + std::to_string(values.size()) + " values for "
                            + std::to_string(samples.size()) + " samples");
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i].set(key, values[i]);
}

template <class F, class... R, class... W>
SampleFunction over_all(F f, Reads<R...> reads, Writes<W...> writes) {
  constexpr bool fits = std::is_invocable_r_v<typename Results<W...>::All, F,
                                              typename Result<R>::Argument...>;
  static_assert(
    fits,
    "groups() and batch() need a function from spans over the samples' values "
    "of reads() to vectors of writes() (a std::tuple of several); a carried "
    "value is a plain number");
  if constexpr (!fits)
    return {};
  else
    return [=](std::span<Sample> samples, CarriedValues& carried) {
      const auto result = std::apply(
        [&](const auto&... key) {
          return f(
            typename Result<R>::Argument(column(samples, carried, key))...);
        },
        reads.keys);
      if constexpr (sizeof...(W) == 1)
        set_column(samples, carried, std::get<0>(writes.keys), result);
      else
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          (set_column(samples, carried, std::get<I>(writes.keys),
                      std::get<I>(result)),
           ...);
        }
      (std::index_sequence_for<W...>{});
    };
}

} // namespace detail

} // namespace troupe
