#include "plans/cost/cluster_file.hpp"

#include "tests/support/plans/support.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <fstream>

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

ClusterHardware cluster_file(const std::string& yaml) {
  return parse_cluster_hardware(yaml, "mixed.yaml");
}

std::string cluster_refusal(const std::string& yaml) {
  return refusal_of([&] { cluster_file(yaml); });
}

TEST(ClusterFile, NodesHaveTheirKindsInOrder) {
  const auto hardware = cluster_file("nodes:\n"
                                     "  - {kind: h100x8, count: 2}\n"
                                     "  - {kind: a100x8}\n"
                                     "  - {kind: h100x8}\n");
  EXPECT_EQ(hardware.kinds.size(), 2u) << "equal entries are one kind";
  EXPECT_THAT(hardware.kind_of_nodes, ElementsAre(0, 0, 1, 0));
  EXPECT_EQ(hardware.name, "3 x h100x8 + 1 x a100x8");
  EXPECT_EQ(hardware.devices_per_node, 8u);
  EXPECT_EQ(hardware.of_node(2).name, "a100x8");
  EXPECT_EQ(hardware.kinds_of(1, 3), 0b11u);
}

TEST(ClusterFile, AKindIsAFileBesideItOrAMapping) {
  const support::TempFolder folder;
  std::ofstream(folder / "old.yaml") << shipped_hardware_text("a100x8");
  auto text = shipped_hardware_text("h100x8");
  text.replace(text.find("h100x8"), 6, "mine");
  std::string indented = "      ";
  for (const auto letter : text.substr(0, text.size() - 1))
    indented += letter == '\n' ? "\n      " : std::string(1, letter);
  std::ofstream(folder / "mixed.yaml")
    << "name: two kinds\nnodes:\n  - {kind: old.yaml, count: 2}\n  - kind:\n"
    << indented << "\n";
  const auto hardware = load_cluster_hardware((folder / "mixed.yaml").string());
  EXPECT_EQ(hardware.name, "two kinds");
  EXPECT_EQ(hardware.of_node(1).name, "a100x8");
  EXPECT_EQ(hardware.of_node(2).name, "mine");
  EXPECT_EQ(hardware.of_node(2).gemm_flops, load_hardware("h100x8").gemm_flops);
  const auto alike = load_cluster_hardware((folder / "old.yaml").string());
  EXPECT_FALSE(alike.is_mixed());
  EXPECT_EQ(alike.num_nodes(), 0u) << "any number of them";
}

TEST(ClusterFile, SourcesOfAllKindsAreCounted) {
  const auto hardware
    = cluster_file("nodes: [{kind: h100x8}, {kind: a100x8, count: 2}]");
  EXPECT_EQ(hardware.sources.size(),
            load_hardware("h100x8").sources.size()
              + load_hardware("a100x8").sources.size());
}

TEST(ClusterFile, MistakesNameLinePathAndWhatToTry) {
  EXPECT_THAT(cluster_refusal("nodes: 2"),
              HasSubstr("mixed.yaml:1: nodes: expected a list of kinds with "
                        "counts, got '2'; try nodes: [{kind: h100x8, "));
  EXPECT_THAT(cluster_refusal("nodes:\n  - {kind: h100, count: 2}"),
              HasSubstr("mixed.yaml:2: nodes[0].kind: expected one of laptop, "
                        "h100x8, h200x8, a100x8, a file or a mapping, got "
                        "'h100'; try 'h100x8'"));
  EXPECT_THAT(cluster_refusal("nodes:\n  - {kind: h100x8, count: 0}"),
              HasSubstr("mixed.yaml:2: nodes[0].count: expected"));
  EXPECT_THAT(cluster_refusal("nodes:\n  - {kind: h100x8, cuont: 2}"),
              HasSubstr("nodes[0].cuont: expected kind or count, got 'cuont'; "
                        "try 'count'"));
  EXPECT_THAT(cluster_refusal("nodes:\n  - {count: 2}"),
              HasSubstr("nodes[0].kind: expected a kind of node, got nothing"));
  EXPECT_THAT(cluster_refusal("nodes: [{kind: h100x8}]\ndevice: {}"),
              HasSubstr("mixed.yaml:2: device: expected name and nodes alone"));
  EXPECT_THAT(
    cluster_refusal("nodes:\n- kind: {name: x, device: {mem_Bps: a}}"),
    HasSubstr("mixed.yaml:2: nodes[0].kind.device.mem_Bps: expected"));
  EXPECT_THAT(cluster_refusal("nodes:\n- kind: {name: x}"),
              HasSubstr("mixed.yaml:2: nodes[0].kind.device.gemm_flops: "
                        "expected a positive number of FLOP/s, got nothing"));
  EXPECT_THAT(cluster_refusal("nodes: [{kind: h100x8}, {kind: laptop}]"),
              HasSubstr("nodes[1].kind: expected a device.mem_bytes, as h100x8 "
                        "has, got 'laptop'"));
}

TEST(ClusterFile, KindsThatCannotBeTogetherAreRefused) {
  const auto changed = [](const std::string& from, const std::string& to) {
    auto text = shipped_hardware_text("a100x8");
    text.replace(text.find(from), from.size(), to);
    std::string indented;
    for (const auto letter : text)
      indented += letter == '\n' ? "\n      " : std::string(1, letter);
    return "nodes:\n  - {kind: a100x8}\n  - kind:\n      " + indented;
  };
  EXPECT_THAT(
    cluster_refusal(changed("devices_per_node: 8", "devices_per_node: 4")),
    HasSubstr("nodes[1].kind: expected a name of its own for other "
              "numbers, got 'a100x8' again"));
  EXPECT_THAT(cluster_refusal(changed("a100x8\ndevices_per_node: 8",
                                      "a100x4\ndevices_per_node: 4")),
              HasSubstr("nodes[1].kind: expected 8 devices_per_node, as a100x8 "
                        "has, got 'a100x4'"));
}

} // namespace
} // namespace troupe::plans
