// A replica of a model under any strategy on threads of this process: engines,
// their groups over the real host collectives, samples distributed over dp, and
// the planes reassembled from the boxes of the layout.
#pragma once

#include "config/base/strategy.hpp"
#include "models/engine/engine.hpp"
#include "models/engine/train_rows.hpp"
#include "models/parallel/parameters.hpp"
#include "net/base/memory_count.hpp"
#include "net/base/rows.hpp"
#include "net/collectives/host_collectives.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::testing {

/// Backends and transports of the devices of a replica, by their index.
struct ReplicaDevices {
  std::function<models::Backend&(std::uint32_t)> backend;
  /// Adds the transport of a device's memory to its group of hosts.
  using Join = std::function<std::shared_ptr<net::Collectives>(
    std::shared_ptr<net::Collectives> host, std::uint32_t device)>;
  Join join;
  const net::BlockMemory* memory = nullptr;
  Join join_link = {}; ///< the same of pipeline links; empty: as `join`
};

class ParallelReplica {
public:
  /// Loads `spec`'s folder on every device of `strategy`, all on its backend,
  /// with sums by way of the host.
  ParallelReplica(models::Engine::Spec spec, const std::string& strategy);
  /// On these devices; those of `spec` are not used.
  ParallelReplica(models::Engine::Spec spec, const std::string& strategy,
                  const ReplicaDevices& devices);

  /// Runs `work(engine, context, dp coordinate)` on all devices at once, one
  /// thread per device; rethrows the first exception.
  using Work
    = std::function<void(models::Engine&, models::RunContext&, std::uint32_t)>;
  void run(const Work& work);
  /// Runs `work` like this on the devices of two replicas of one strategy, each
  /// thread with the engines and contexts of both.
  using WorkOfTwo
    = std::function<void(models::Engine&, models::RunContext&, models::Engine&,
                         models::RunContext&, std::uint32_t)>;
  void run_with(ParallelReplica& other, const WorkOfTwo& work);

  /// Trains on mini-batches distributed over dp (sample i of a batch on i %
  /// dp, cp ranks having the same ones); returns the merged sums of the devices
  /// that count. `beside`: more rows of the same steps, distributed likewise.
  models::MetricSums train(models::TrainSpec spec, const net::Rows& rows,
                           const models::TrainRows* beside = nullptr);
  /// Runs inference on samples distributed over dp, results in sample order.
  net::Rows infer(const std::string& fn, const net::Rows& rows,
                  const models::InferOptions& options = {});
  net::Rows generate(const net::Rows& prompts,
                     const models::GenerateOptions& options);

  /// Returns the elements of each parameter by name. Fails the test if two
  /// devices hold different bits of one element.
  std::map<std::string, std::vector<float>> plane(models::Plane plane) const;

  models::Engine& engine(std::size_t index) {
    return *engines_[index];
  }
  std::size_t size() const {
    return engines_.size();
  }
  const Strategy& strategy() const {
    return strategy_;
  }
  /// Returns the memory count of a device: its engine and what `run` allocates.
  net::MemoryCount& memory(std::size_t index) {
    return memory_[index];
  }

private:
  /// Returns one dp rank's part of rows and their mini-batches.
  models::TrainRows share(const models::TrainSpec& spec, const net::Rows& rows,
                          std::uint32_t dp) const;
  bool counts(const Coordinate& where) const {
    return where.tp == 0 && where.pp + 1 == strategy_.pp
           && context_rank_of(strategy_, where) == 0;
  }
  net::Rows
  over_dp(const net::Rows& rows,
          const std::function<net::Rows(models::Engine&, models::RunContext&,
                                        const net::Rows&)>& work);

  Strategy strategy_;
  net::GroupRegistry registry_;
  std::vector<models::Groups> groups_;
  std::deque<net::MemoryCount> memory_; ///< outlive the engines
  std::vector<models::Backend*> backends_;
  std::vector<std::unique_ptr<models::Engine>> engines_;
};

/// Expects the same tokens, log-probabilities within 1e-4 (I1, I2).
void expect_same_responses(const net::Rows& got, const net::Rows& want);

} // namespace troupe::testing
