#include "actors/protocol/sum_parts.hpp"

namespace troupe::actors {

std::vector<SumPart> to_parts(const models::MetricSums& sums) {
  std::vector<SumPart> parts;
  for (const auto& entry : sums.all())
    parts.push_back({entry.name, static_cast<std::uint8_t>(entry.kind),
                     Bits{entry.sum}, Bits{entry.weight}});
  return parts;
}

models::MetricSums to_metric_sums(const std::vector<SumPart>& parts) {
  models::MetricSums sums;
  for (const auto& part : parts)
    sums.add(models::Sum{part.name, part.sum.number(), part.weight.number(),
                         static_cast<models::SumKind>(part.kind)});
  return sums;
}

} // namespace troupe::actors
