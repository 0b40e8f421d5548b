// Measures one model of a run in one layout, through the engine that runs it
// and on all devices at once: passes of inference and training, the optimizer's
// step separately, prompts and steps of generation. Calls, losses and options
// are the run's own.
#pragma once

#include "models/engine/engine.hpp"
#include "plans/cost/plan_problem.hpp"
#include "plans/cost/profile_fit.hpp"
#include "runtime/planning/profile_pool.hpp"
#include "runtime/planning/profile_rows.hpp"

#include <chrono>
#include <memory>
#include <span>
#include <vector>

namespace troupe::runtime {

/// A model and what a run does with it; roles of one shape are one model.
struct ProfiledModel {
  const plans::Role* role = nullptr; ///< the trained role, if there is one
  ModelShape shape = {};
  const plans::Call* inference = nullptr; ///< null: none
  const plans::Call* train = nullptr;
  const plans::Call* generate = nullptr;
};

/// The subject of a measurement and its devices.
struct ProfileSubject {
  const Settings& settings;
  const plans::Workflow& workflow;
  const plans::BatchSizes& sizes;
  SampleLengths lengths;
};

/// Results; profilers add to them.
struct ProfileFindings {
  /// Adds a measurement; of equal ones the shorter one counts.
  void add(const plans::ProfileEntry& entry);
  void add_optimizer(const plans::TimedWork& step);

  std::vector<plans::ProfileEntry> entries = {};
  std::vector<plans::TimedWork> optimizer = {}; ///< bytes of its traffic
  double best_flops = 0;                        ///< best rate of one device, in
                                                ///< inference
};

class ModelProfiler {
public:
  /// Creates engines with random weights on as many devices as groups of `tp`
  /// fill.
  ModelProfiler(const ProfileSubject& subject, const ProfiledModel& model,
                std::uint32_t tp, ProfilePool& pool, ProfileFindings& findings);
  ~ModelProfiler();

  /// Measures this layout completely, the ends of the sizes first; omits what
  /// would not be done by `deadline`.
  void measure(std::chrono::steady_clock::time_point deadline);

private:
  struct Device;
  /// Measures so many samples per group and adds the result; returns the
  /// seconds of a round.
  using Measurement = double (ModelProfiler::*)(std::uint32_t samples);

  void make_engine(std::uint32_t device,
                   std::shared_ptr<net::Collectives> tensor_group);
  std::uint32_t most_samples(plans::CallKind kind) const;
  void measure_sizes(plans::CallKind kind, Measurement measurement,
                     std::chrono::steady_clock::time_point deadline);
  void optimizer();
  double forward(std::uint32_t samples);
  double train(std::uint32_t samples);
  double generate(std::uint32_t samples);
  double decode(const net::Rows& prompts, double first_s, std::uint32_t steps,
                std::uint32_t most);
  double train_s(const models::TrainSpec& spec, const net::Rows& rows);
  plans::ResponseRoom room_for(std::size_t responses) const;
  double generate_s(const net::Rows& prompts, std::int64_t tokens);
  void add(plans::ProfileOp op, double tokens, double seconds);

  const ProfileSubject& subject_;
  const ProfiledModel& model_;
  std::uint32_t tp_;
  ProfilePool& pool_;
  ProfileFindings& findings_;
  std::vector<std::unique_ptr<Device>> devices_;
  double optimizer_s_ = 0;
};

} // namespace troupe::runtime
