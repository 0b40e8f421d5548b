#include "plans/weights/rounded_moves.hpp"

#include "config/model/product_operands.hpp"

namespace troupe::plans {

bool is_only_computed_with(const Workflow& workflow, const Replica& target) {
  const Role& role = workflow.role(target.role);
  return role.trained && !role.ema && !target.home;
}

std::vector<bool> read_rounded(std::span<const ParameterShape> parameters) {
  std::vector<bool> rounded;
  for (const ParameterShape& parameter : parameters)
    rounded.push_back(read_by_products(parameter));
  return rounded;
}

} // namespace troupe::plans
