#include "runtime/run_folder/run_keeper.hpp"

#include "actors/checkpoint/snapshot_record.hpp"
#include "config/base/text_hash.hpp"

#include <fmt/format.h>

namespace troupe::runtime {

std::string keeper_name(const std::filesystem::path& run_folder) {
  const auto path = std::filesystem::weakly_canonical(run_folder);
  return fmt::format("{:016x}", text_hash(path.string()));
}

net::KeeperClient keeper_client(const std::filesystem::path& run_folder) {
  return net::KeeperClient(keeper_name(run_folder), {});
}

void end_snapshots(const std::filesystem::path& run_folder) {
  actors::forget_snapshot(run_folder);
  keeper_client(run_folder).end();
}

} // namespace troupe::runtime
