#include "tests/support/plans/recipes.hpp"

#include "config/model/known_models.hpp"

namespace troupe::support {

Settings settings_of(const plans::Recipe& recipe) {
  plans::ImportFacts facts{.device_bytes = 80e9};
  for (const auto& [role, name] : recipe.work.models)
    if (const auto* known = find_known_model(name))
      facts.shapes[name] = known->shape;
  return parse_settings(plans::print_imported(recipe, facts), "imported.yaml");
}

} // namespace troupe::support
