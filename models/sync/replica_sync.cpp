#include "models/sync/replica_sync.hpp"

#include "net/collectives/collectives.hpp"

#include <algorithm>

namespace troupe::models {

std::vector<std::int64_t> most_passes(std::vector<std::int64_t> own,
                                      net::Collectives& dp) {
  std::vector<std::int64_t> all(own.size() * dp.size());
  if (own.empty())
    return own;
  dp.all_gather(own.data(), all.data(), own.size(), DType::i64,
                "micro-batches");
  for (std::size_t i = 0; i < all.size(); ++i)
    own[i % own.size()] = std::max(own[i % own.size()], all[i]);
  return own;
}

bool any_wants(bool own, net::Collectives& dp) {
  std::int64_t wanted = own ? 1 : 0;
  dp.all_reduce_sum(&wanted, 1, DType::i64, "another pass");
  return wanted > 0;
}

double sum_over_groups(
  double mine,
  std::initializer_list<std::shared_ptr<net::Collectives>> groups) {
  for (const auto& group : groups)
    if (group != nullptr && group->size() > 1)
      group->all_reduce_sum(&mine, 1, DType::f64, "gradient norm");
  return mine;
}

} // namespace troupe::models
