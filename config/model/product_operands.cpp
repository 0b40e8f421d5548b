#include "config/model/product_operands.hpp"

namespace troupe {

bool read_by_products(const ParameterShape& parameter) {
  return !parameter.vector && parameter.name != "score.weight"
         && parameter.name != "model.embed_positions.weight"
         && !parameter.name.ends_with(".router.weight");
}

} // namespace troupe
