// A golden case of a loss as a packed batch: rows [N, width] become N sequences
// whose padding is masked.
#pragma once

#include "models/losses/loss.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/models/golden.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::testing {

struct LossCase {
  std::string name;
  std::string function;
  nlohmann::json params;
  GoldenTensors in;
  GoldenTensors out;
  double tolerance = 0;

  explicit LossCase(const std::string& case_name) : name(case_name) {
    const auto folder = golden_case_folder("rl/" + name);
    const auto meta = read_golden_meta(folder);
    function = meta["function"];
    params = meta["params"];
    tolerance = meta["tolerance_abs"];
    in = read_golden(folder / "inputs.safetensors");
    out = read_golden(folder / "outputs.safetensors");
  }

  std::int64_t rows() const {
    return in.at("mask").shape[0];
  }
  std::int64_t width() const {
    return in.at("mask").shape[1];
  }
  /// Returns a parameter that may be missing or null.
  double number(const char* key, double otherwise) const {
    return params.contains(key) && !params[key].is_null()
             ? params[key].get<double>()
             : otherwise;
  }
};

/// Names of the cases of a function in the folder that the tests read.
inline std::vector<std::string>
cases_of(const std::vector<std::string>& functions) {
  std::vector<std::string> found;
  for (const auto& name : golden_cases("rl")) {
    const auto meta = read_golden_meta(golden_folder() / "rl" / name);
    if (meta.contains("function")
        && std::ranges::find(functions, meta["function"].get<std::string>())
             != functions.end())
      found.push_back(name);
  }
  return found;
}

/// Turns a case's name into that of a test.
inline std::string
case_test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
    name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

inline at::Tensor flat(const GoldenTensor& tensor) {
  const auto floats = tensor.floats();
  return at::tensor(at::ArrayRef<float>(floats), at::kFloat);
}

inline at::Tensor leaf(const GoldenTensor& tensor) {
  return flat(tensor).set_requires_grad(true);
}

/// A golden case [rows, width] as a packed batch.
inline models::TrainBatch batch_of(const LossCase& c) {
  models::TrainBatch batch;
  for (std::int64_t i = 0; i <= c.rows(); ++i)
    batch.cu_seqlens.push_back(i * c.width());
  batch.mask_T = flat(c.in.at("mask"));
  return batch;
}

inline models::Denominators denominators_of(const LossCase& c) {
  double tokens = 0;
  for (const double own : c.in.at("mask").values)
    tokens += own;
  return {.tokens = tokens, .sequences = static_cast<double>(c.rows())};
}

inline void expect_gradient(const at::Tensor& leaf_T, const LossCase& c,
                            const char* name, double factor = 1.0) {
  const at::Tensor got_T = leaf_T.grad().contiguous();
  const auto& want = c.out.at(name).values;
  ASSERT_EQ(got_T.numel(), static_cast<std::int64_t>(want.size()));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(factor * got_T.const_data_ptr<float>()[i], want[i], c.tolerance)
      << "entry " << i;
}

} // namespace troupe::testing
