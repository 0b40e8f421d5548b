// Reads golden cases (tensors and meta.json) for tests of models, with a reader
// of its own so that the code under test does not check itself.
#pragma once

#include "config/settings/settings_types.hpp"

#include "tests/support/places.hpp"
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::testing {

/// A tensor as numbers: integers and masks are exact in double.
struct GoldenTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values; ///< row-major

  std::vector<float> floats() const;
  std::vector<std::int32_t> ints() const;
  std::vector<std::uint8_t> mask() const;
  double item() const; ///< the value of a one-element tensor
};

using GoldenTensors = std::map<std::string, GoldenTensor>;

using support::golden_folder;
/// Returns the folder of a case, e.g. "rl/kto": that of the source tree where
/// the second opinion has no case of this name.
std::filesystem::path golden_case_folder(const std::string& name);
/// All tensors of a file (F32, F64, BF16, I64, I32, U8).
GoldenTensors read_golden(const std::filesystem::path& safetensors);
nlohmann::json read_golden_meta(const std::filesystem::path& case_folder);
/// Returns the optimizer that a training case specifies.
OptimizerSettings golden_optimizer(const nlohmann::json& spec);
/// Names of the golden models, with or without those that have a scalar head.
std::vector<std::string> golden_models(bool scalar_heads);
/// Names of the case folders below `part` (sorted), e.g. "samplers".
std::vector<std::string> golden_cases(const std::string& part);

} // namespace troupe::testing

/// Skips the test, with the reason, where the second opinion is absent; the
/// golden data of the source tree is always there.
#define TROUPE_NEEDS_GOLDEN()                                                  \
  do {                                                                         \
    if (::troupe::support::second_opinion()                                    \
        && !std::filesystem::exists(::troupe::testing::golden_folder()))       \
      GTEST_SKIP() << "no golden data at "                                     \
                   << ::troupe::testing::golden_folder();                      \
  } while (false)
