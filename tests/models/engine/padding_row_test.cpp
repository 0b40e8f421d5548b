// The row of the embedding that look-ups do not train (`padding_idx` of
// transformers), against three steps of transformers on models whose pad token
// is also an ordinary token (data/make_padding_rows.py), under every strategy.
#include "models/engine/engine.hpp"
#include "models/hf/stored_parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/places.hpp"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <tuple>

namespace troupe::models {
namespace {

using nlohmann::json;
using troupe::testing::ParallelReplica;
using troupe::testing::TempFolder;

json padding_rows() {
  std::ifstream file(support::source_folder()
                     / "tests/models/cases/padding_rows.json");
  return json::parse(file);
}

/// The weights of `start` in the script: sines by the parameter's index in the
/// sorted names.
void write_padding_model(const std::filesystem::path& folder,
                         const json& config) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << config.dump();
  const auto all = parameters(read_model_shape(folder));
  std::vector<std::string> names;
  for (const auto& p : all)
    names.push_back(p.name);
  std::ranges::sort(names);
  std::vector<std::vector<float>> data(all.size());
  std::vector<ParameterValues> values;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto place = std::ranges::find(names, all[i].name) - names.begin();
    const double one
      = all[i].name.find("norm") != std::string::npos ? 1.0 : 0.0;
    for (std::int64_t k = 0; k < all[i].num_elements(); ++k)
      data[i].push_back(
        static_cast<float>(one
                           + 0.3
                               * std::sin(1.7 * static_cast<double>(k + 1)
                                          + 0.9 * static_cast<double>(place))));
    values.push_back({&all[i], std::as_bytes(std::span<const float>(data[i]))});
  }
  write_weights(folder, FileTensors(values, DType::f32).tensors());
}

/// Packs each response after its prompt, so that responses to a prompt share
/// it.
net::Rows response_rows(const json& golden) {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::vector<std::uint8_t>> masks;
  for (std::size_t p = 0; p < golden["prompts"].size(); ++p)
    for (const auto& response : golden["answers"][p]) {
      auto row = golden["prompts"][p].get<std::vector<std::int32_t>>();
      masks.emplace_back(row.size(), 0);
      for (const auto& id : response)
        row.push_back(id);
      masks.back().resize(row.size(), 1);
      ids.push_back(std::move(row));
    }
  return {testing::first_samples(ids.size()),
          {testing::column_of("sequence_ids", DType::i32, ids),
           testing::column_of("loss_mask", DType::u8, masks)}};
}

class PaddingRow
  : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
protected:
  const json golden_ = padding_rows();
  const json case_ = golden_["cases"][std::get<0>(GetParam())];
  TempFolder folder_;

  ParallelReplica replica() const {
    write_padding_model(folder_ / "model", case_["config"]);
    auto spec = testing::trained_actor(folder_ / "model");
    const auto& optimizer = golden_["optimizer"];
    spec.optimizer.lr = optimizer["lr"];
    spec.optimizer.weight_decay = optimizer["weight_decay"];
    spec.optimizer.betas = {optimizer["betas"][0], optimizer["betas"][1]};
    spec.optimizer.schedule = "constant";
    return ParallelReplica(spec, std::get<1>(GetParam()));
  }
};

void expect_near(const std::vector<float>& got, const json& want,
                 double allowed, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i].get<double>(), allowed)
      << what << " entry " << i;
}

TEST_P(PaddingRow, IsTrainedByTheHeadOnlyAsInTransformers) {
  auto replica = this->replica();
  const net::Rows rows = response_rows(golden_);
  TrainSpec train;
  train.fn = "sft_loss";
  train.mini_batches = {testing::first_samples(rows.num_samples())};
  for (std::size_t step = 0; step < golden_["optimizer"]["steps"]; ++step) {
    const MetricSums sums = replica.train(train, rows);
    EXPECT_NEAR(sums.value("train/loss"), case_["loss"][step].get<double>(),
                1e-5);
    if (step == 0)
      expect_near(replica.plane(Plane::grad).at("model.embed_tokens.weight"),
                  case_["embedding_gradient"], 1e-5, "gradient");
  }
  const auto weights = replica.plane(Plane::weight);
  expect_near(weights.at("model.embed_tokens.weight"), case_["embedding"], 1e-4,
              "embedding");
  for (const auto& [name, norm] : case_["norms"].items()) {
    double squares = 0;
    for (const float x : weights.at(name))
      squares += double{x} * x;
    EXPECT_NEAR(std::sqrt(squares), norm.get<double>(), 1e-3) << name;
  }
}
INSTANTIATE_TEST_SUITE_P(
  All, PaddingRow,
  ::testing::Combine(::testing::Values("llama_tied", "llama_untied",
                                       "gemma_default", "qwen2_minus_one"),
                     ::testing::Values("d1", "t2", "t4", "t2s", "p2", "p2t2",
                                       "d2z1", "d2z3", "d2p2z3")),
  [](const auto& test) {
    return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
  });

} // namespace
} // namespace troupe::models
