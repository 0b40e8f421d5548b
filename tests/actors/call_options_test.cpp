#include "actors/call_options.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

TEST(TraceBytes, TheMasterHasHalfAndWorkersShareTheRest) {
  Settings settings;
  settings.trace.max_gb = 4;
  plans::Cluster cluster;
  cluster.nodes = 8;
  cluster.devices_per_node = 8;
  cluster.workers_per_node = 8;
  EXPECT_EQ(trace_bytes_of_master(settings), 2'000'000'000u);
  EXPECT_EQ(trace_bytes_of_worker(settings, cluster), 31'250'000u);
  cluster.nodes = cluster.workers_per_node = 1;
  EXPECT_EQ(trace_bytes_of_worker(settings, cluster), 2'000'000'000u);
}

} // namespace
} // namespace troupe::actors
