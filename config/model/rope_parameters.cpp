#include "config/model/rope_parameters.hpp"

#include <algorithm>

namespace troupe {

std::string to_string(RopeScaling scaling) {
  switch (scaling) {
  case RopeScaling::none:
    return "";
  case RopeScaling::linear:
    return "linear";
  case RopeScaling::dynamic:
    return "dynamic";
  case RopeScaling::llama3:
    return "llama3";
  case RopeScaling::yarn:
    return "yarn";
  case RopeScaling::longrope:
    return "longrope";
  }
  return "";
}

std::int64_t context_tokens(const RopeParameters& rope,
                            std::int64_t max_positions) {
  const auto scaled = [&](std::int64_t positions) {
    return static_cast<std::int64_t>(rope.factor
                                     * static_cast<double>(positions));
  };
  switch (rope.scaling) {
  case RopeScaling::linear:
    return scaled(max_positions);
  case RopeScaling::yarn:
    return std::max(max_positions, scaled(rope.original_positions));
  case RopeScaling::longrope:
    return std::min(max_positions, rope.original_positions);
  default:
    return max_positions;
  }
}

} // namespace troupe
