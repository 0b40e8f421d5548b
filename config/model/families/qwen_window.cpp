#include "config/model/families/qwen_window.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

void read_qwen_window(const HfObject& config, ModelShape& shape) {
  if (!config.flag("use_sliding_window", false)
      || config.has_null("sliding_window"))
    return;
  shape.sliding_window = config.size("sliding_window", 4096);
  const HfJson* from = config.find("max_window_layers");
  const bool all = from && *from == 0;
  shape.window_from_layer = all ? 0 : config.size("max_window_layers", 28);
  read_layer_types(config, shape, [](std::int64_t) { return false; });
  if (config.find("layer_types"))
    return;
  for (std::size_t i = 0; i < shape.windowed_layers.size(); ++i)
    shape.windowed_layers[i]
      = static_cast<std::int64_t>(i) >= shape.window_from_layer;
}

void print_qwen_window(const ModelShape& shape, HfJson& config) {
  config["use_sliding_window"] = shape.sliding_window > 0;
  if (shape.sliding_window == 0)
    return;
  config["sliding_window"] = shape.sliding_window;
  config["max_window_layers"] = shape.window_from_layer;
  print_layer_types(shape, config);
}

} // namespace troupe
