#include "config/model/hf_rope.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <utility>

namespace troupe {

namespace {

constexpr std::int64_t positions_limit = std::int64_t{1} << 31;
constexpr const char* original_key = "original_max_position_embeddings";

RopeScaling rope_scaling_of(const HfObject& rope, const char* key,
                            const std::string& name) {
  if (name == "default")
    return RopeScaling::none;
  if (name == "su") // the name of longrope before it was published
    return RopeScaling::longrope;
  for (const auto scaling :
       {RopeScaling::linear, RopeScaling::dynamic, RopeScaling::llama3,
        RopeScaling::yarn, RopeScaling::longrope})
    if (to_string(scaling) == name)
      return scaling;
  rope.fail(key, "\"default\", \"linear\", \"dynamic\", \"llama3\", \"yarn\" "
                 "or \"longrope\"");
}

void read_band(const HfObject& rope, const char* low, const char* high,
               RopeParameters& found) {
  found.band_low = rope.positive(low, found.band_low);
  found.band_high = rope.positive(high, found.band_high);
  if (found.band_high <= found.band_low)
    rope.fail(high, fmt::format("a number > {}", low));
}

void read_yarn(const HfObject& rope, const ModelShape& shape,
               RopeParameters& found) {
  for (const char* key : {"mscale", "mscale_all_dim"})
    if (rope.find(key))
      rope.fail(key, "no such key (DeepSeek's scale of the scores)");
  if (!rope.flag("truncate", true))
    rope.fail("truncate", "true");
  found.original_positions
    = rope.size(original_key, shape.max_positions, positions_limit);
  found.factor = rope.positive(
    "factor", static_cast<double>(shape.max_positions)
                / static_cast<double>(found.original_positions));
  found.band_low = 1;
  found.band_high = 32;
  read_band(rope, "beta_slow", "beta_fast", found);
  if (rope.find("attention_factor"))
    found.attention_factor = rope.positive("attention_factor", 0);
}

std::vector<double> read_factors(const HfObject& rope, const char* key,
                                 std::int64_t count) {
  const HfJson* given = rope.find(key);
  if (!given || !given->is_array()
      || given->size() != static_cast<std::size_t>(count))
    rope.fail(key, fmt::format("{} numbers, one per frequency", count));
  std::vector<double> factors;
  for (const auto& factor : *given) {
    if (!factor.is_number() || factor.get<double>() <= 0)
      rope.fail(key, "numbers > 0");
    factors.push_back(factor.get<double>());
  }
  return factors;
}

/// Published configs have the original positions beside `rope_scaling`.
void read_longrope(const HfObject& config, const HfObject& rope,
                   const ModelShape& shape, RopeParameters& found) {
  const auto frequencies = found.rotated_dim(shape.head_dim) / 2;
  found.short_factors = read_factors(rope, "short_factor", frequencies);
  found.long_factors = read_factors(rope, "long_factor", frequencies);
  const HfObject& place = rope.find(original_key) ? rope : config;
  found.original_positions
    = place.size(original_key, shape.max_positions, positions_limit);
  if (rope.find("attention_factor"))
    found.attention_factor = rope.positive("attention_factor", 0);
}

void read_scaling(const HfObject& config, const HfObject& rope,
                  const ModelShape& shape, RopeParameters& found) {
  const char* key = rope.find("rope_type") ? "rope_type" : "type";
  found.scaling = rope_scaling_of(rope, key, rope.text(key, "default"));
  switch (found.scaling) {
  case RopeScaling::none:
    break;
  case RopeScaling::linear:
  case RopeScaling::dynamic:
    found.factor = rope.positive("factor", 0);
    break;
  case RopeScaling::llama3:
    found.factor = rope.positive("factor", 0);
    found.original_positions = rope.size(original_key, 0, positions_limit);
    rope.positive("low_freq_factor", 0);
    rope.positive("high_freq_factor", 0);
    read_band(rope, "low_freq_factor", "high_freq_factor", found);
    break;
  case RopeScaling::yarn:
    read_yarn(rope, shape, found);
    break;
  case RopeScaling::longrope:
    read_longrope(config, rope, shape, found);
    break;
  }
}

void check_share(const HfObject& rope, const Family& family,
                 const ModelShape& shape, const std::string& key,
                 const RopeParameters& found) {
  if (!family.rotates_part && found.share != 1)
    rope.fail(key, "1 (whole heads rotate)");
  const auto dim = found.rotated_dim(shape.head_dim);
  if (found.share > 1 || dim < 2 || dim % 2 != 0)
    rope.fail(key,
              fmt::format("a share of {} dimensions that is an even number",
                          shape.head_dim));
}

void read_share(const HfObject& rope, const Family& family,
                const ModelShape& shape, const std::string& key,
                RopeParameters& found) {
  if (!rope.find(key))
    return;
  found.share = rope.positive(key, 0);
  check_share(rope, family, shape, key, found);
}

/// Layers with a window have rotations of their own, which are not scaled.
void read_local(const HfObject& rope, RopeParameters& found) {
  if (rope.text("rope_type", "default") != "default")
    rope.fail("rope_type", "\"default\" for layers with a window");
  found.local_theta = rope.positive("rope_theta", found.local_theta);
}

/// Prints what families without a key of its own for the base of layers with a
/// window say by kind of layer.
HfJson rope_by_kind(const RopeParameters& rope, HfJson scaling) {
  if (scaling.is_null())
    scaling = {{"rope_type", "default"}};
  scaling["rope_theta"] = rope.theta;
  return {{"full_attention", scaling},
          {"sliding_attention",
           {{"rope_type", "default"}, {"rope_theta", rope.local_theta}}}};
}

HfJson scaling_json(const RopeParameters& rope) {
  if (rope.scaling == RopeScaling::none)
    return nullptr;
  HfJson json = {{"rope_type", to_string(rope.scaling)}};
  if (rope.scaling == RopeScaling::longrope) {
    json["short_factor"] = rope.short_factors;
    json["long_factor"] = rope.long_factors;
  } else {
    json["factor"] = rope.factor;
  }
  if (rope.scaling == RopeScaling::llama3) {
    json["low_freq_factor"] = rope.band_low;
    json["high_freq_factor"] = rope.band_high;
  } else if (rope.scaling == RopeScaling::yarn) {
    json["beta_slow"] = rope.band_low;
    json["beta_fast"] = rope.band_high;
  }
  if (rope.original_positions > 0)
    json[original_key] = rope.original_positions;
  if (rope.attention_factor > 0)
    json["attention_factor"] = rope.attention_factor;
  return json;
}

} // namespace

void read_rope(const HfObject& config, const Family& family,
               ModelShape& shape) {
  if (family.keys.rope_theta.empty())
    return;
  const Family::Keys& keys = family.keys;
  RopeParameters found;
  found.theta = config.positive(keys.rope_theta, family.defaults.rope_theta);
  found.local_theta = family.defaults.local_rope_theta;
  if (found.local_theta > 0 && !keys.local_rope_theta.empty())
    found.local_theta
      = config.positive(keys.local_rope_theta, found.local_theta);
  found.share = family.defaults.rotated_share;
  read_share(config, family, shape, keys.rotated_share, found);
  const char* key
    = config.find("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (config.find(key)) {
    const auto given = config.object(key);
    const bool by_kind = given.find("full_attention") != nullptr;
    const auto rope = by_kind ? given.object("full_attention") : given;
    if (by_kind && given.find("sliding_attention"))
      read_local(given.object("sliding_attention"), found);
    found.theta = rope.positive("rope_theta", found.theta);
    read_share(rope, family, shape, "partial_rotary_factor", found);
    read_scaling(config, rope, shape, found);
  }
  check_share(config, family, shape, keys.rotated_share, found);
  shape.rope = std::move(found);
}

void print_rope(const ModelShape& shape, HfJson& config) {
  const Family::Keys& keys = find_family(shape.family)->keys;
  config[keys.rope_theta] = shape.rope.theta;
  if (shape.rope.local_theta > 0 && !keys.local_rope_theta.empty())
    config[keys.local_rope_theta] = shape.rope.local_theta;
  if (shape.rope.local_theta > 0 && keys.local_rope_theta.empty())
    config["rope_parameters"]
      = rope_by_kind(shape.rope, scaling_json(shape.rope));
  if (find_family(shape.family)->rotates_part)
    config[keys.rotated_share] = shape.rope.share;
  config["rope_scaling"] = scaling_json(shape.rope);
  if (shape.rope.scaling == RopeScaling::longrope)
    config[original_key] = shape.rope.original_positions;
}

} // namespace troupe
