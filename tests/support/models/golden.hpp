// Reads golden cases (tensors and meta.json) for tests of models, with a reader
// of its own so that the code under test is not also the judge.
#pragma once

#include "config/settings_types.hpp"

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
  double item() const; ///< of a tensor with one value
};

using GoldenTensors = std::map<std::string, GoldenTensor>;

/// The golden folder: $TROUPE_SHARED/golden, else beside the source tree.
std::filesystem::path golden_folder();
/// All tensors of a file (F32, F64, BF16, I64, I32, U8).
GoldenTensors read_golden(const std::filesystem::path& safetensors);
nlohmann::json read_golden_meta(const std::filesystem::path& case_folder);
/// The optimizer that a training case names.
OptimizerSettings golden_optimizer(const nlohmann::json& spec);
/// Names of the case folders below `part` (sorted), e.g. "samplers".
std::vector<std::string> golden_cases(const std::string& part);

} // namespace troupe::testing

/// Skips the test, with the reason, where the golden data is absent.
#define TROUPE_NEEDS_GOLDEN()                                                  \
  do {                                                                         \
    if (!std::filesystem::exists(::troupe::testing::golden_folder()))          \
      GTEST_SKIP() << "no golden data at "                                     \
                   << ::troupe::testing::golden_folder();                      \
  } while (false)
