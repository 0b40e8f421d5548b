#include "models/sync/replica_sync.hpp"

#include "net/collectives/collectives.hpp"

namespace troupe::models {

double sum_over_groups(
  double mine,
  std::initializer_list<std::shared_ptr<net::Collectives>> groups) {
  for (const auto& group : groups)
    if (group != nullptr && group->size() > 1)
      group->all_reduce_sum(&mine, 1, DType::f64, "gradient norm");
  return mine;
}

} // namespace troupe::models
