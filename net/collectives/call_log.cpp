#include "net/collectives/call_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace troupe::net {

namespace {

/// Summary of the calls that members compare.
struct CallSummary {
  std::uint64_t count = 0;
  std::uint64_t digest = 0;
  bool operator==(const CallSummary&) const = default;
};

/// FNV-1a.
class CallDigest {
public:
  explicit CallDigest(std::uint64_t from) : value_(from) {}
  template <class T>
  CallDigest& add(const T& numbers) {
    static_assert(std::has_unique_object_representations_v<T>);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&numbers);
    for (std::size_t i = 0; i < sizeof numbers; ++i)
      value_ = (value_ ^ bytes[i]) * 0x100000001b3ULL;
    return *this;
  }
  std::uint64_t value() const {
    return value_;
  }

private:
  std::uint64_t value_;
};

} // namespace

void CallLog::add(const CallMark& mark) {
  latest_[count_ % num_kept] = mark;
  ++count_;
  digest_ = CallDigest(digest_)
              .add(mark.count)
              .add(mark.root)
              .add(mark.operation)
              .add(mark.dtype)
              .add(mark.name)
              .value();
}

void CallLog::compare(Collectives& group, const std::string& who) {
  const CallSummary mine{count_, digest_};
  std::vector<CallSummary> all(group.size());
  group.all_gather(&mine, all.data(), sizeof mine, DType::u8,
                   "calls on streams");
  compared_ = count_;
  if (std::ranges::count(all, all[0]) == group.size())
    return;
  const Failure failure{Errc::bug, who, difference(group), ""};
  group.abort(failure);
  throw FailureError{failure};
}

/// Returns the earliest difference that is known; all members call it.
std::string CallLog::difference(Collectives& group) const {
  struct Calls {
    std::uint64_t count = 0;
    Latest latest{};
  };
  const Calls mine{count_, latest_};
  std::vector<Calls> all(group.size());
  group.all_gather(&mine, all.data(), sizeof mine, DType::u8,
                   "calls on streams that differ");
  std::uint64_t least = count_;
  std::uint64_t most = count_;
  for (const Calls& calls : all) {
    least = std::min(least, calls.count);
    most = std::max(most, calls.count);
  }
  for (auto i = most > num_kept ? most - num_kept : 0; i < least; ++i)
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      const CallMark& first = all[0].latest[i % num_kept];
      const CallMark& other = all[rank].latest[i % num_kept];
      if (first != other)
        return fmt::format("call {} on streams: rank 0 called {}, rank {} {}",
                           i + 1, to_string(first), rank, to_string(other));
    }
  return fmt::format("members made between {} and {} calls on streams", least,
                     most);
}

} // namespace troupe::net
