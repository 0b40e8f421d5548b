// Golden cases of balancing and resharding (rl/ of the golden data).
#include "plans/weights/move_plan.hpp"
#include "plans/workflow/balance.hpp"

#include <gtest/gtest.h>

#include "tests/support/places.hpp"
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <numeric>

namespace troupe::plans {
namespace {

std::filesystem::path golden_folder() {
  return support::golden_folder() / "rl";
}

nlohmann::json read_case(const std::filesystem::path& folder) {
  std::ifstream file(folder / "case.json");
  return nlohmann::json::parse(file);
}

/// One parameter; regions are [[row0, row1], [col0, col1]] or [[row0, row1]].
Layout layout_of(const nlohmann::json& regions, std::int64_t cols) {
  Layout layout;
  for (const auto& [rank, region] : regions.items()) {
    Box box{.row0 = region[0][0], .row1 = region[0][1], .col1 = cols};
    if (region.size() > 1) {
      box.col0 = region[1][0];
      box.col1 = region[1][1];
    }
    if (box.num_elements() == 0)
      continue; // a layout has no empty boxes
    layout.shards.push_back(
      {.device = Rank{std::stoul(rank)},
       .boxes = {box},
       .size_bytes = std::uint64_t(box.num_elements()) * 4});
  }
  return layout;
}

/// Element numbers of the global tensor in the order of a box.
std::vector<std::int32_t> numbers_of(const Box& box, std::int64_t cols) {
  std::vector<std::int32_t> numbers;
  for (auto row = box.row0; row < box.row1; ++row)
    for (auto col = box.col0; col < box.col1; ++col)
      numbers.push_back(std::int32_t(row * cols + col));
  return numbers;
}

TEST(GoldenPlans, KarmarkarKarpGivesTheSameBins) {
  const auto folder = golden_folder() / "karmarkar_karp";
  if (support::second_opinion() && !std::filesystem::exists(folder))
    GTEST_SKIP() << "no golden data at " << folder;
  const auto golden = read_case(folder);
  const auto lens = golden["inputs"]["lens"].get<std::vector<std::uint64_t>>();
  const auto bins = golden["outputs"]["partitions"]
                      .get<std::vector<std::vector<std::uint32_t>>>();
  EXPECT_EQ(balance(lens, golden["params"]["k"], false), bins);
}

/// Returns what `shard` holds after the plan; -1 where nothing was written.
std::vector<std::int32_t> received(const Shard& shard, const Layout& source,
                                   const std::vector<Transfer>& plan,
                                   std::int64_t cols) {
  std::vector<std::int32_t> filled(shard.size_bytes / 4, -1);
  for (const auto& t : transfers_to(plan, shard.device)) {
    const auto sent = numbers_of(source.of(t.from).boxes[0], cols);
    for (std::uint64_t i = 0; i < t.total_bytes() / 4; ++i) {
      const auto run = i / (t.bytes / 4), at = i % (t.bytes / 4);
      auto& slot
        = filled.at((t.target_offset + run * t.target_stride) / 4 + at);
      EXPECT_EQ(slot, -1) << "written twice";
      slot = sent.at((t.source_offset + run * t.source_stride) / 4 + at);
    }
  }
  return filled;
}

TEST(GoldenPlans, EveryReshardingFillsItsBoxesOnce) { // I3
  if (support::second_opinion() && !std::filesystem::exists(golden_folder()))
    GTEST_SKIP() << "no golden data at " << golden_folder();
  int cases = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(golden_folder())) {
    if (!entry.path().filename().string().starts_with("reshard_"))
      continue;
    ++cases;
    const auto golden = read_case(entry.path());
    const auto& shape = golden["inputs"]["shape"];
    const std::int64_t cols = shape.size() > 1 ? shape[1].get<int>() : 1;
    const auto source = layout_of(golden["outputs"]["src_regions"], cols);
    const auto target = layout_of(golden["outputs"]["dst_regions"], cols);
    const Cluster cluster{.devices_per_node = 64, .workers_per_node = 8};
    const auto plan = move_plan(source, target, cluster);
    for (const auto& shard : target.shards)
      EXPECT_EQ(received(shard, source, plan, cols),
                numbers_of(shard.boxes[0], cols))
        << entry.path();
  }
  EXPECT_GT(cases, 0);
}

} // namespace
} // namespace troupe::plans
