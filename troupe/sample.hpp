// One sample as user-defined actors and functions see it: the values of the
// keys that their call reads and of those that it sets. Values are stored as
// bytes so that a Sample can be a message (CAF 0.17 corrupts infinities and NaN
// in floats).
#pragma once

#include "troupe/key.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe {

class Sample {
public:
  struct Entry {
    std::string key;
    std::uint8_t type = 0;  ///< a KeyType
    std::string bytes = {}; ///< all elements, or the text

    bool operator==(const Entry&) const = default;
    template <class Inspector>
    friend typename Inspector::result_type inspect(Inspector& f, Entry& x) {
      return f(x.key, x.type, x.bytes);
    }
  };

  Sample() = default;
  /// Creates an empty sample; samples of one prompt share a `group`, `id` is
  /// unique within the step.
  explicit Sample(std::uint32_t id, std::uint32_t group = 0)
    : id_(id),
      group_(group) {}

  std::uint32_t id() const {
    return id_;
  }
  std::uint32_t group() const {
    return group_;
  }
  template <class T, Per P>
  bool has(Key<T, P> key) const {
    return find(key.name) != nullptr;
  }
  /// Returns the value of a key; throws std::out_of_range if the call does not
  /// read it.
  template <class T, Per P>
  typename Key<T, P>::Value operator[](Key<T, P> key) const {
    const Entry& entry = at(info(key));
    if constexpr (std::is_same_v<T, std::string>)
      return entry.bytes;
    else if constexpr (P == per_token)
      return {reinterpret_cast<const T*>(entry.bytes.data()),
              entry.bytes.size() / sizeof(T)};
    else
      return number<T>(entry);
  }
  template <class T>
  Sample& set(Key<T, per_sample> key, const std::type_identity_t<T>& value) {
    Entry& entry = make(info(key));
    if constexpr (std::is_same_v<T, std::string>)
      entry.bytes = value;
    else
      entry.bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  template <class T>
  Sample& set(Key<T, per_token> key,
              std::span<const std::type_identity_t<T>> values) {
    make(info(key)).bytes.assign(reinterpret_cast<const char*>(values.data()),
                                 values.size_bytes());
    return *this;
  }

  /// Appends a text to the conversation (troupe/model.hpp): the model reads it
  /// before its next turn, and it is not trained on (loss_mask 0).
  Sample& append(std::string_view text) {
    make(info(keys::appended)).bytes += text;
    return *this;
  }

  /// Trace arrow of the message that carries this sample; 0: none.
  struct Arrow {
    std::uint64_t flow = 0;
    std::uint32_t step = 0;
  };
  Arrow arrow() const {
    return arrow_;
  }
  void set_arrow(Arrow arrow) {
    arrow_ = arrow;
  }

  const std::vector<Entry>& entries() const {
    return entries_;
  }
  std::vector<Entry>& entries() {
    return entries_;
  }

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, Sample& x) {
    return f(x.id_, x.group_, x.arrow_.flow, x.arrow_.step, x.entries_);
  }

private:
  template <class T>
  static T number(const Entry& entry) {
    T value{};
    if (entry.bytes.size() == sizeof(T))
      std::memcpy(&value, entry.bytes.data(), sizeof(T));
    return value;
  }
  const Entry* find(std::string_view key) const {
    const auto at = std::ranges::find(entries_, key, &Entry::key);
    return at == entries_.end() ? nullptr : &*at;
  }
  const Entry& at(const KeyInfo& key) const {
    const Entry* entry = find(key.name);
    if (entry == nullptr)
      throw std::out_of_range("sample " + std::to_string(id_) + " has no "
                              + key.name + "; put it into the call's reads()");
    if (entry->type != static_cast<std::uint8_t>(key.type))
      throw std::out_of_range("key " + key.name
                              + " is read with another type than written");
    return *entry;
  }
  Entry& make(const KeyInfo& key) {
    const auto at = std::ranges::find(entries_, key.name, &Entry::key);
    Entry& entry = at == entries_.end() ? entries_.emplace_back() : *at;
    entry.key = key.name;
    entry.type = static_cast<std::uint8_t>(key.type);
    return entry;
  }

  std::uint32_t id_ = 0;
  std::uint32_t group_ = 0;
  Arrow arrow_;
  std::vector<Entry> entries_;
};

} // namespace troupe
