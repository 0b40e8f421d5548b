#include "models/hf/safetensors.hpp"

#include "tests/support/models/io_support.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using testing::golden_folder;
using ::testing::HasSubstr;
using testing::read_text;
using testing::write_text;
using troupe::testing::TempFolder;

fs::path safetensors_golden(const std::string& part) {
  return golden_folder() / "safetensors" / part;
}

std::string hex_of(std::span<const std::byte> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : bytes) {
    out += digits[static_cast<unsigned>(byte) >> 4];
    out += digits[static_cast<unsigned>(byte) & 15];
  }
  return out;
}

template <class T>
std::span<const std::byte> tensor_bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST(Safetensors, ReadsEveryValidGoldenFile) {
  const fs::path folder = safetensors_golden("valid");
  TROUPE_NEEDS_DATA(folder);
  const json meta = json::parse(read_text(folder / "meta.json"));
  for (const auto& [name, expected] : meta.at("files").items()) {
    SCOPED_TRACE(name);
    const auto file = SafetensorsFile::open(folder / name);
    EXPECT_EQ(json(file.metadata()), expected.at("metadata"));
    EXPECT_EQ(file.tensors().size(), expected.at("tensors").size());
    for (const auto& [tensor, is] : expected.at("tensors").items()) {
      SCOPED_TRACE(tensor);
      const StoredTensor& got = file.at(tensor);
      EXPECT_EQ(got.dtype, is.at("dtype").get<std::string>());
      EXPECT_EQ(json(got.shape), is.at("shape"));
      EXPECT_EQ(hex_of(got.data), is.at("hex").get<std::string>());
    }
  }
}

TEST(Safetensors, RejectsEveryMalformedGoldenFileForTheRightReason) {
  const fs::path folder = safetensors_golden("malformed");
  TROUPE_NEEDS_DATA(folder);
  const json meta = json::parse(read_text(folder / "meta.json"));
  for (const auto& [name, expected] : meta.at("files").items()) {
    SCOPED_TRACE(name);
    const bool must_fail = expected.at("expected") == "reject";
    try {
      SafetensorsFile::open(folder / name);
      EXPECT_FALSE(must_fail);
    } catch (const SafetensorsError& error) {
      std::vector<std::string> right = expected.at("also_right");
      right.push_back(expected.at("error"));
      EXPECT_THAT(right, ::testing::Contains(to_string(error.fault())));
      EXPECT_THAT(error.what(), HasSubstr(name));
      EXPECT_THAT(error.what(), HasSubstr(": expected a whole safetensors "
                                          "file, got a malformed one ("));
    }
  }
}

TEST(Safetensors, SurvivesEveryMutant) {
  const fs::path folder = safetensors_golden("mutants");
  TROUPE_NEEDS_DATA(folder);
  const json meta = json::parse(read_text(folder / "meta.json"));
  for (const auto& [name, expected] : meta.at("files").items()) {
    SCOPED_TRACE(name);
    try {
      SafetensorsFile::open(folder / name);
      EXPECT_NE(expected.at("expected"), "reject");
    } catch (const SafetensorsError& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  }
}

TEST(Safetensors, FollowsOrRefusesEveryGoldenIndex) {
  TROUPE_NEEDS_DATA(safetensors_golden("index"));
  for (const auto& entry :
       fs::directory_iterator(safetensors_golden("index"))) {
    SCOPED_TRACE(entry.path().filename());
    const json meta = json::parse(read_text(entry.path() / "meta.json"));
    try {
      const auto weights = StoredWeights::open(entry.path());
      EXPECT_NE(meta.at("expected"), "reject");
      for (const auto& [name, value] : meta.at("values").items()) {
        float got = 0;
        weights.at(name).copy_to(DType::f32,
                                 std::as_writable_bytes(std::span(&got, 1)));
        EXPECT_EQ(got, value.get<float>()) << name;
      }
    } catch (const ConfigError& error) {
      EXPECT_NE(meta.at("expected"), "accept") << error.what();
      EXPECT_THAT(error.what(), HasSubstr("model"));
    }
  }
}

TEST(Safetensors, RefusesOnlyTheTensorOfAnUnsupportedType) {
  TROUPE_NEEDS_DATA(safetensors_golden("valid"));
  const auto file = SafetensorsFile::open(safetensors_golden("valid")
                                          / "all_dtypes.safetensors");
  EXPECT_EQ(file.at("bf16").type(), DType::bf16);
  try {
    file.at("f8_e4m3").type();
    FAIL() << "an F8 tensor was accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("all_dtypes.safetensors"));
    EXPECT_THAT(error.what(), HasSubstr("f8_e4m3"));
    EXPECT_THAT(error.what(), HasSubstr("F8_E4M3"));
  }
}

TEST(Safetensors, NamesAMissingFile) {
  const TempFolder folder;
  try {
    SafetensorsFile::open(folder / "nothing.safetensors");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nothing.safetensors"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
  EXPECT_THROW(StoredWeights::open(folder.path()), ConfigError);
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const TempFolder folder;
  const std::vector<float> weight{1, -2, 0.5F, 3, 4, 5};
  const std::vector<std::int32_t> ids{7, -1};
  const std::vector<TensorToStore> tensors{
    {"b", {2, 3}, DType::f32, DType::f32, tensor_bytes(weight)},
    {"a", {2, 3}, DType::f32, DType::bf16, tensor_bytes(weight)},
    {"scalar", {}, DType::i32, DType::i32, tensor_bytes(ids).first(4)},
    {"empty", {0, 3}, DType::f32, DType::f32, {}},
  };
  write_safetensors(folder / "x.safetensors", tensors);
  const auto file = SafetensorsFile::open(folder / "x.safetensors");
  EXPECT_EQ(hex_of(file.at("b").data), hex_of(tensor_bytes(weight)));
  EXPECT_EQ(file.at("a").type(), DType::bf16);
  std::vector<float> back(6);
  file.at("a").copy_to(DType::f32, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, weight);
  EXPECT_EQ(file.at("scalar").num_elements(), 1);
  EXPECT_TRUE(file.at("empty").data.empty());
  EXPECT_THAT(file.metadata(), ElementsAre(std::pair("format", "pt")));
}

TEST(Safetensors, WritesTheSameBytesInAnyOrder) {
  const TempFolder folder;
  const std::vector<float> values(300, 1.25F);
  std::vector<TensorToStore> tensors;
  for (const char* name : {"z", "m", "a"})
    tensors.push_back(
      {name, {300}, DType::f32, DType::bf16, tensor_bytes(values)});
  write_safetensors(folder / "one", tensors);
  std::swap(tensors[0], tensors[2]);
  write_safetensors(folder / "two", tensors, {.sync = Sync::yes});
  EXPECT_EQ(read_text(folder / "one"), read_text(folder / "two"));
}

TEST(Safetensors, ConvertsALargeTensorBlockByBlock) {
  const TempFolder folder;
  std::vector<float> values(700'001);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 251) - 125.0F;
  const std::vector<TensorToStore> tensors{
    {"w", {700'001}, DType::f32, DType::bf16, tensor_bytes(values)}};
  write_safetensors(folder / "w", tensors);
  const auto file = SafetensorsFile::open(folder / "w");
  std::vector<float> back(values.size());
  file.at("w").copy_to(DType::f32, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, values);
}

TEST(Safetensors, SplitsIntoShardsAndRemovesThoseOfAnEarlierSave) {
  const TempFolder folder;
  const std::vector<float> values(8, 2.0F);
  std::vector<TensorToStore> tensors;
  for (const char* name : {"a", "b", "c"})
    tensors.push_back(
      {name, {8}, DType::f32, DType::f32, tensor_bytes(values)});
  const auto names
    = write_weights(folder.path(), tensors, {.max_shard_bytes = 64});
  EXPECT_THAT(names, ElementsAre("model-00001-of-00002.safetensors",
                                 "model-00002-of-00002.safetensors",
                                 "model.safetensors.index.json"));
  const auto index
    = json::parse(read_text(folder / "model.safetensors.index.json"));
  EXPECT_EQ(index.at("metadata").at("total_size"), 96);
  EXPECT_THAT(StoredWeights::open(folder.path()).names(),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(write_weights(folder.path(), tensors),
              ElementsAre("model.safetensors"));
  EXPECT_FALSE(fs::exists(folder / "model.safetensors.index.json"));
  EXPECT_FALSE(fs::exists(folder / "model-00001-of-00002.safetensors"));
  EXPECT_EQ(hex_of(StoredWeights::open(folder.path()).at("c").data),
            hex_of(tensor_bytes(values)));
}

TEST(Safetensors, FullDiskIsAFailureThatNamesThePathAndLeavesNothing) {
  const TempFolder folder;
  const std::vector<float> values(64 * 1024);
  const std::vector<TensorToStore> tensors{
    {"w", {64 * 1024}, DType::f32, DType::f32, tensor_bytes(values)}};
  // A limit on the file's size stands in for a full disk.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string what;
  Errc code = Errc::ok;
  try {
    write_safetensors(folder / "w.safetensors", tensors);
  } catch (const FailureError& error) {
    what = error.failure().what;
    code = error.failure().code;
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(code, Errc::io);
  EXPECT_THAT(what, HasSubstr("w.safetensors"));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Safetensors, UnwritableFolderIsAFailure) {
  const TempFolder folder;
  EXPECT_THROW(write_safetensors(folder / "no/such/x.safetensors", {}),
               FailureError);
}

} // namespace
} // namespace troupe::models
