// Loading by slice: pages of a model's files that hold no byte of a device's
// boxes may even be unreadable.
#include "models/hf/stored_parameters.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>

namespace troupe::models {
namespace {

using troupe::testing::TempFolder;
using troupe::testing::write_random_model;

/// Rows of the MLP's matrices are longer than a page, also when halved.
ModelShape paged_shape() {
  auto shape = troupe::testing::small_shape();
  shape.hidden_size = 64;
  shape.head_dim = 16;
  shape.intermediate_size = 4096;
  shape.vocab_size = 1000;
  return shape;
}

using PageIndex = std::uintptr_t;

PageIndex page_of(const std::byte* byte) {
  return reinterpret_cast<std::uintptr_t>(byte)
         / static_cast<std::uintptr_t>(::getpagesize());
}

/// Returns the pages of tensors that hold a part of `held`.
std::map<PageIndex, bool> wanted_pages(const StoredWeights& weights,
                                       const LocalModel& part,
                                       const plans::Shard& held) {
  std::map<PageIndex, bool> wanted;
  for (const auto& name : weights.names()) {
    const auto& data = weights.at(name).data;
    for (auto page = page_of(data.data()); page <= page_of(&data.back());
         ++page)
      wanted.emplace(page, false);
  }
  for (const auto& box : held.boxes) {
    const auto& whole = part.parameters[box.parameter];
    const auto& data = weights.at(whole.name).data;
    for (auto row = box.row0; row < box.row1; ++row) {
      const auto* first = data.data() + 4 * (row * whole.cols + box.col0);
      const auto* last = data.data() + 4 * (row * whole.cols + box.col1) - 1;
      for (auto page = page_of(first); page <= page_of(last); ++page)
        wanted[page] = true;
    }
  }
  return wanted;
}

/// Makes a read of the other pages end the program; returns their share.
double lock_others(const std::map<PageIndex, bool>& wanted) {
  const auto bytes = static_cast<std::size_t>(::getpagesize());
  double locked = 0;
  for (const auto& [page, is_wanted] : wanted) {
    if (is_wanted)
      continue;
    void* start = reinterpret_cast<void*>(page * bytes);
    EXPECT_EQ(::mprotect(start, bytes, PROT_NONE), 0);
    ++locked;
  }
  return locked / static_cast<double>(wanted.size());
}

struct SliceCase {
  const char* strategy;
  double others; ///< share of the file's pages that no device needs, at least
};

class HeldBoxes : public ::testing::TestWithParam<SliceCase> {};

TEST_P(HeldBoxes, AreAllThatADeviceReadsFromFiles) {
  const TempFolder folder;
  const auto shape = paged_shape();
  write_random_model(folder.path(), shape, 3);
  const auto whole = StoredWeights::open(folder.path());
  const auto strategy = parse_strategy(GetParam().strategy);
  for (std::uint32_t device = 0; device < strategy.num_devices(); ++device) {
    const LocalModel part(shape, strategy, coordinate_of(strategy, device));
    const auto weights = StoredWeights::open(folder.path());
    EXPECT_GT(lock_others(wanted_pages(weights, part, part.held)),
              GetParam().others)
      << "device " << device;
    Parameters parameters(part, false);
    float* plane = parameters.plane(Plane::weight).data();
    read_held_boxes(weights, part.parameters, part.held, plane);
    for (const auto& box : part.held.boxes) {
      std::vector<float> expected(static_cast<std::size_t>(box.num_elements()));
      const auto& parameter = part.parameters[box.parameter];
      read_stored_box(whole.at(parameter.name), parameter, box.row0, box.row1,
                      box.col0, box.col1, expected.data());
      EXPECT_TRUE(std::ranges::equal(
        expected,
        std::span(plane + box.offset_bytes / sizeof(float), expected.size())))
        << parameter.name;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Strategies, HeldBoxes,
                         ::testing::Values(SliceCase{"t2", 0.4},
                                           SliceCase{"p2", 0.4},
                                           SliceCase{"p2t2", 0.6},
                                           SliceCase{"d3z3", 0.6}),
                         [](const auto& one) { return one.param.strategy; });

} // namespace
} // namespace troupe::models
