#include "parallel_support.hpp"

#include "models/generate/generate_options.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/parallel/local_model.hpp"
#include "net/collectives/all_to_all.hpp"
#include "net/collectives/staged_collectives.hpp"

#include "backend_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe::testing {

namespace {

// Members of one process under a name that all of them know.
net::GroupSpec group_of(const std::string& name, std::uint32_t index,
                        std::uint32_t size) {
  net::GroupSpec spec;
  spec.name = name;
  spec.index = index;
  spec.members.resize(size);
  return spec;
}

/// A device of a replica, which joins its groups.
struct Joining {
  net::GroupRegistry& registry;
  const Strategy& strategy;
  const ReplicaDevices& devices;
  const Coordinate where;

  std::uint32_t index() const {
    return index_of(strategy, where);
  }
  std::shared_ptr<net::Collectives>
  group(const std::string& name, std::uint32_t index, std::uint32_t size) const;
  std::shared_ptr<net::Collectives> axis(const char* name,
                                         std::uint32_t Coordinate::*axis,
                                         std::uint32_t size) const;
  std::shared_ptr<net::Channel> link(std::uint32_t from) const;
};

std::shared_ptr<net::Collectives> Joining::group(const std::string& name,
                                                 std::uint32_t index,
                                                 std::uint32_t size) const {
  return devices.join(
    net::make_host_collectives(group_of(name, index, size), registry),
    this->index());
}

std::shared_ptr<net::Collectives> Joining::axis(const char* name,
                                                std::uint32_t Coordinate::*axis,
                                                std::uint32_t size) const {
  if (size == 1)
    return nullptr;
  Coordinate first = where;
  first.*axis = 0;
  return group(name + std::to_string(index_of(strategy, first)), where.*axis,
               size);
}

std::shared_ptr<net::Channel> Joining::link(std::uint32_t from) const {
  Coordinate first = where;
  const std::uint32_t end = where.pp == from ? 0 : 1;
  first.pp = from;
  auto spec
    = group_of("link" + std::to_string(index_of(strategy, first)), end, 2);
  const auto host = net::make_channel_groups(spec, registry);
  spec.name += " on streams";
  const auto streams = net::make_channel_groups(spec, registry);
  const auto staged = [&](std::shared_ptr<net::Collectives> group) {
    return devices.memory == nullptr
             ? group
             : net::make_staged_collectives(std::move(group), *devices.memory);
  };
  const auto& join = devices.join_link ? devices.join_link : devices.join;
  models::Backend& backend = devices.backend(index());
  return std::make_shared<net::Channel>(
    net::ChannelGroups{staged(host.out), staged(host.in), host.end},
    net::ChannelDevice{
      devices.memory,
      [&backend] { backend.enter(); },
      {join(streams.out, index()), join(streams.in, index()), streams.end}});
}

// A channel to each of the dp ranks that have the experts with this one.
std::shared_ptr<net::AllToAll> join_experts(net::GroupRegistry& registry,
                                            const Strategy& strategy,
                                            const Coordinate& where) {
  const std::uint32_t size = strategy.expert_group_dp();
  if (size == 1)
    return nullptr;
  const std::uint32_t own = where.dp % size;
  std::vector<std::shared_ptr<net::Channel>> channels(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    Coordinate other = where;
    other.dp += i - own;
    const auto name
      = "experts" + std::to_string(index_of(strategy, std::min(where, other)))
        + "-" + std::to_string(index_of(strategy, std::max(where, other)));
    if (i != own)
      channels[i]
        = net::make_host_channel(group_of(name, own < i ? 0 : 1, 2), registry);
  }
  return std::make_shared<net::AllToAll>(std::move(channels), own);
}

std::shared_ptr<net::Collectives> join_expert_copies(const Joining& device) {
  const Strategy& strategy = device.strategy;
  const std::uint32_t step = strategy.expert_group_dp();
  if (step == 1 || step == strategy.dp)
    return nullptr;
  Coordinate first = device.where;
  first.dp %= step;
  return device.group("copies" + std::to_string(index_of(strategy, first)),
                      device.where.dp / step, strategy.dp / step);
}

std::shared_ptr<net::Collectives> join_context(const Joining& device) {
  const std::uint32_t own = context_rank_of(device.strategy, device.where);
  if (device.strategy.cp == 1)
    return nullptr;
  Coordinate first = device.where;
  first.dp -= own;
  return device.group("cp" + std::to_string(index_of(device.strategy, first)),
                      own, device.strategy.cp);
}

models::Groups join_groups(const Joining& device) {
  const Strategy& strategy = device.strategy;
  const Coordinate& where = device.where;
  models::Groups groups;
  groups.dp = device.axis("dp", &Coordinate::dp, strategy.dp);
  groups.cp = join_context(device);
  groups.tp = device.axis("tp", &Coordinate::tp, strategy.tp);
  groups.pp = device.axis("pp", &Coordinate::pp, strategy.pp);
  groups.experts = join_experts(device.registry, strategy, where);
  groups.expert_copies = join_expert_copies(device);
  if (strategy.pp == 1)
    return groups;
  if (where.pp == 0 || where.pp + 1 == strategy.pp) {
    Coordinate first = where;
    first.pp = 0;
    groups.ends
      = device.group("ends" + std::to_string(index_of(strategy, first)),
                     where.pp == 0 ? 0 : 1, 2);
  }
  groups.previous = device.link((where.pp + strategy.pp - 1) % strategy.pp);
  groups.next = device.link(where.pp);
  return groups;
}

// The boxes whose numbers count: with z, for a gradient, this dp rank's own.
const std::vector<plans::Box>& boxes_of(const models::LocalModel& part,
                                        models::Plane plane) {
  return plane == models::Plane::weight ? part.held.boxes
                                        : part.optimizer.boxes;
}

// A gradient under z1 has the offsets of the whole local model.
const float* start_of(const models::LocalModel& part,
                      const models::Parameters& parameters, const float* start,
                      const plans::Box& box, models::Plane plane) {
  if (plane != models::Plane::grad || plans::cuts_weights(part.strategy))
    return start + box.offset_bytes / sizeof(float);
  const models::PartBox& owner = part.owner(box.parameter);
  return start + parameters.offset(part.box_index(owner)) + owner.place_of(box);
}

} // namespace

ParallelReplica::ParallelReplica(models::Engine::Spec spec,
                                 const std::string& strategy)
  : ParallelReplica(
    spec, strategy,
    {.backend = [backend = spec.backend](std::uint32_t) -> models::Backend& {
       return backend != nullptr ? *backend : models::host_backend();
     },
     .join = [](std::shared_ptr<net::Collectives> host,
                std::uint32_t) { return over_device(std::move(host)); },
     .memory = &device_memory()}) {}

ParallelReplica::ParallelReplica(models::Engine::Spec spec,
                                 const std::string& strategy,
                                 const ReplicaDevices& devices)
  : strategy_(parse_strategy(strategy)) {
  for (std::uint32_t i = 0; i < strategy_.num_devices(); ++i) {
    spec.backend = &devices.backend(i);
    spec.strategy = strategy_;
    spec.where = coordinate_of(strategy_, i);
    spec.backend->enter(); // for load_weights
    backends_.push_back(spec.backend);
    std::thread([&] {
      memory_.emplace_back().count_this_thread();
      engines_.push_back(std::make_unique<models::Engine>(spec));
    }).join();
    engines_.back()->load_weights();
    groups_.push_back(join_groups({registry_, strategy_, devices, spec.where}));
  }
}

void ParallelReplica::run_with(ParallelReplica& other, const WorkOfTwo& work) {
  run(
    [&](models::Engine& engine, models::RunContext& context, std::uint32_t dp) {
      const auto same = std::ranges::find_if(
        engines_, [&](const auto& one) { return one.get() == &engine; });
      const auto i = static_cast<std::size_t>(same - engines_.begin());
      models::RunContext beside = context;
      beside.groups = other.groups_[i];
      try {
        work(engine, context, *other.engines_[i], beside, dp);
      } catch (const std::exception& error) {
        other.registry_.abort_all({Errc::aborted, "test", error.what(), ""});
        throw;
      }
    });
}

void ParallelReplica::run(const Work& work) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < engines_.size(); ++i)
    threads.emplace_back([&, i] {
      models::RunContext context;
      context.groups = groups_[i];
      memory_[i].count_this_thread();
      try {
        backends_[i]->enter();
        work(*engines_[i], context, coordinate_of(strategy_, i).dp);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
        registry_.abort_all({Errc::aborted, "test", error.what(), ""});
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

models::TrainRows ParallelReplica::share(const models::TrainSpec& spec,
                                         const net::Rows& rows,
                                         std::uint32_t dp) const {
  models::TrainRows own{spec, {}};
  const std::uint32_t ranks = strategy_.sample_ranks();
  std::vector<SampleId> samples;
  for (auto& batch : own.spec.mini_batches) {
    std::vector<SampleId> mine;
    for (std::size_t i = dp / strategy_.cp; i < batch.size(); i += ranks)
      mine.push_back(batch[i]);
    batch = mine;
    for (const SampleId sample : mine)
      if (std::ranges::find(samples, sample) == samples.end())
        samples.push_back(sample);
  }
  if (!samples.empty())
    own.rows = net::select(rows, samples);
  return own;
}

models::MetricSums ParallelReplica::train(models::TrainSpec spec,
                                          const net::Rows& rows,
                                          const models::TrainRows* beside) {
  std::mutex mutex;
  models::MetricSums total;
  run(
    [&](models::Engine& engine, models::RunContext& context, std::uint32_t dp) {
      const auto own = share(spec, rows, dp);
      std::optional<models::TrainRows> more;
      if (beside != nullptr)
        more = share(beside->spec, beside->rows, dp);
      const models::MetricSums sums
        = engine.train(own.spec, own.rows, context, more ? &*more : nullptr);
      const std::lock_guard lock(mutex);
      total.merge(sums);
    });
  return total;
}

net::Rows ParallelReplica::over_dp(
  const net::Rows& rows,
  const std::function<net::Rows(models::Engine&, models::RunContext&,
                                const net::Rows&)>& work) {
  std::mutex mutex;
  std::vector<net::Rows> parts(strategy_.dp);
  run(
    [&](models::Engine& engine, models::RunContext& context, std::uint32_t dp) {
      std::vector<SampleId> mine;
      for (std::size_t i = dp / strategy_.cp; i < rows.samples.size();
           i += strategy_.sample_ranks())
        mine.push_back(rows.samples[i]);
      const net::Rows out = work(engine, context, net::select(rows, mine));
      const std::lock_guard lock(mutex);
      if (counts(engine.part().where))
        parts[dp] = out;
    });
  std::erase_if(parts,
                [](const net::Rows& part) { return part.samples.empty(); });
  return net::select(net::concat(parts), rows.samples);
}

net::Rows ParallelReplica::infer(const std::string& fn, const net::Rows& rows,
                                 const models::InferOptions& options) {
  return over_dp(rows, [&](models::Engine& engine, models::RunContext& context,
                           const net::Rows& own) {
    return engine.infer(fn, own, context, options);
  });
}

net::Rows ParallelReplica::generate(const net::Rows& prompts,
                                    const models::GenerateOptions& options) {
  return over_dp(prompts,
                 [&](models::Engine& engine, models::RunContext& context,
                     const net::Rows& own) {
                   return engine.generate(own, options, context);
                 });
}

// One plane of the whole model, filled box by box.
struct WholeTensor {
  std::vector<float> values;
  std::vector<bool> known;

  void put(std::int64_t element, float value, const std::string& name) {
    const auto at = static_cast<std::size_t>(element);
    if (known[at]) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[at]),
                std::bit_cast<std::uint32_t>(value))
        << name << " differs between its owners";
    }
    values[at] = value;
    known[at] = true;
  }
};

void put_box(const plans::Box& box, const ParameterShape& shape,
             const float* from, WholeTensor& tensor) {
  tensor.values.resize(static_cast<std::size_t>(shape.num_elements()));
  tensor.known.resize(tensor.values.size());
  for (auto row = box.row0; row < box.row1; ++row)
    for (auto col = box.col0; col < box.col1; ++col)
      tensor.put(row * shape.cols + col, *from++, shape.name);
}

std::map<std::string, std::vector<float>>
ParallelReplica::plane(models::Plane plane) const {
  std::map<std::string, WholeTensor> found;
  for (const auto& engine : engines_) {
    const models::LocalModel& part = engine->part();
    const auto values = engine->parameters().read(plane);
    for (const plans::Box& box : boxes_of(part, plane)) {
      const ParameterShape& shape = part.parameters[box.parameter];
      put_box(box, shape,
              start_of(part, engine->parameters(), values.floats(), box, plane),
              found[shape.name]);
    }
  }
  std::map<std::string, std::vector<float>> whole;
  for (auto& [name, tensor] : found) {
    EXPECT_TRUE(std::ranges::all_of(tensor.known, std::identity{}))
      << name << " has elements without an owner";
    whole[name] = std::move(tensor.values);
  }
  return whole;
}

void expect_same_responses(const net::Rows& got, const net::Rows& want) {
  const auto ids = [](const net::Rows& rows) {
    return rows.at("sequence_ids").as<std::int32_t>();
  };
  EXPECT_EQ(got.at("sequence_ids").lengths, want.at("sequence_ids").lengths);
  EXPECT_THAT(ids(got), ::testing::ElementsAreArray(ids(want)));
  EXPECT_THAT(got.at("logprobs").as<float>(),
              ::testing::Pointwise(::testing::FloatNear(1e-4F),
                                   want.at("logprobs").as<float>()));
}

} // namespace troupe::testing
