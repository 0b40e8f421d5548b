// The control plane as devices grow: processor time of the master and its
// messages for a PPO step in which nothing is computed. Master, call, move and
// heartbeat actors are those of a run, in this process; the workers are fakes,
// all in another (fake_workers.hpp), so that its time is the master's alone.
#include "actors/protocol/system.hpp"
#include "net/child_programs/child_pool.hpp"
#include "runtime/base/event_queue.hpp"
#include "runtime/launch/launcher.hpp"
#include "runtime/prepare/prepared_run.hpp"
#include "runtime/session/run_actors.hpp"
#include "runtime/session/run_entrance.hpp"

#include "card_folder.hpp"
#include "fake_workers.hpp"
#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <stdexcept>
#include <variant>

namespace troupe::bench {
namespace {

using actors::Joined;
using Clock = std::chrono::steady_clock;

constexpr auto scale_patience = std::chrono::seconds{120};
constexpr std::uint32_t unmeasured_steps = 2;

/// A cluster, and the plan of its run.
struct Size {
  std::uint32_t devices = 0;
  std::uint32_t workers = 0;
  const char* plan = "data_parallel";
};

struct AllLoaded {
  std::vector<actors::SetupDone> ready;
};
using ScaleEvent = std::variant<std::vector<Joined>, AllLoaded,
                                actors::StepReport, actors::RunEnd, Failure>;

double own_cpu_s() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec)
           + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// As many samples as devices: each device has as much to do at every size.
runtime::PreparedRun prepared(const CardFolder& folder, const Size& size,
                              std::uint32_t steps) {
  const auto prompts = folder.root() / "many.jsonl";
  std::ofstream out(prompts);
  for (std::uint32_t row = 0; row < size.devices; ++row)
    out << R"({"prompt": "abcdefgh"})" << '\n';
  out.close();
  auto words = folder.ppo_settings();
  for (const std::string& word :
       {"run.name=scale_" + std::to_string(size.devices) + "_"
          + std::to_string(size.workers) + "_" + size.plan,
        "run.steps=" + std::to_string(steps), std::string("cluster.nodes=1"),
        "cluster.devices_per_node=" + std::to_string(size.devices),
        "cluster.workers_per_node=" + std::to_string(size.workers),
        std::string("cluster.device=cpu"), std::string("trace.enabled=false"),
        "data.train=" + prompts.string(),
        "data.batch_size=" + std::to_string(size.devices),
        std::string("algorithm.mini_batches=1"),
        std::string("plan=") + size.plan})
    words.push_back(word);
  return runtime::prepare(load_settings({"/dev/null"}, words));
}

/// A run whose workers are fakes.
class FakeRun {
public:
  FakeRun(const CardFolder& folder, const Size& size, std::uint32_t steps)
    : run_(prepared(folder, size, steps)),
      lock_(runtime::begin_attempt(run_)),
      basis_(runtime::make_basis(run_, "bench")),
      children_([this](const net::ChildExit& exit) {
        if (exit.code != 0 || exit.signal != 0)
          events_.push(Failure{.code = Errc::peer_lost,
                               .who = exit.name,
                               .what = net::to_string(exit),
                               .cause = ""});
      }),
      entrance_(system_),
      actors_(system_, basis_),
      count_file_(folder.root() / "orders") {
    std::filesystem::remove(count_file_);
    start_workers(folder.root() / "token", size.workers);
    load();
  }
  ~FakeRun() { // also when the start failed half-way
    children_.stop_all(std::chrono::seconds{1});
    entrance_.end();
    actors_.end();
  }
  FakeRun(const FakeRun&) = delete;
  FakeRun& operator=(const FakeRun&) = delete;

  nlohmann::json measure(std::uint32_t steps);

private:
  template <class Wanted>
  Wanted wait_for() {
    auto event = events_.pop_until(Clock::now() + scale_patience);
    if (!event)
      throw std::runtime_error("the control plane is silent");
    if (auto* failure = std::get_if<Failure>(&*event))
      throw FailureError{*failure};
    if (auto* end = std::get_if<actors::RunEnd>(&*event);
        end != nullptr && end->kind == actors::RunEnd::Kind::failed)
      throw FailureError{end->failure};
    if (auto* wanted = std::get_if<Wanted>(&*event))
      return std::move(*wanted);
    throw std::runtime_error("the control plane ended early");
  }
  template <class What>
  auto pushes() {
    return [this](auto... parts) { events_.push(What{std::move(parts)...}); };
  }

  void start_workers(const std::filesystem::path& token_file,
                     std::uint32_t workers) {
    const auto address = entrance_.open(
      basis_,
      {.on_full = pushes<std::vector<Joined>>(),
       .on_lost = [this](WorkerId, Failure why) { events_.push(why); }});
    std::ofstream(token_file) << entrance_.secret().text;
    const auto colon = address.rfind(':');
    children_.start(
      {.name = "fake workers",
       .argv = {runtime::user_program(), fake_workers_verb,
                address.substr(0, colon), address.substr(colon + 1),
                token_file.string(), std::to_string(workers)},
       .environment = {},
       .working_folder = {},
       .output_file = count_file_,
       .limits = {}});
  }
  void load() {
    const auto began = Clock::now();
    const auto workers = wait_for<std::vector<Joined>>();
    joined_s_ = std::chrono::duration<double>(Clock::now() - began).count();
    actors_.load(workers, {.on_ready = pushes<AllLoaded>(),
                           .on_failure = pushes<Failure>()});
    actors_.spawn_master(wait_for<AllLoaded>().ready,
                         {.on_step = pushes<actors::StepReport>(),
                          .on_evaluation = [](const auto&) {},
                          .on_end = pushes<actors::RunEnd>(),
                          .on_stall = [](const auto&) {}});
    caf::anon_send(entrance_.heartbeat(), actors::ping_atom::value,
                   actors::HeartbeatListener{actors_.master()});
  }
  std::uint64_t orders_of_steps() {
    caf::anon_send(entrance_.heartbeat(), actors::stop_atom::value);
    children_.wait_all(std::chrono::seconds{20});
    std::uint64_t orders = 0;
    if (!(std::ifstream(count_file_) >> orders))
      throw std::runtime_error("the fake workers did not count");
    return orders;
  }

  runtime::PreparedRun run_;
  std::shared_ptr<runtime::RunLock> lock_;
  runtime::RunBasis basis_;
  runtime::EventQueue<ScaleEvent> events_;
  net::ChildPool children_;
  actors::SystemConfig config_{0};
  caf::actor_system system_{config_};
  runtime::RunEntrance entrance_;
  runtime::RunActors actors_;
  std::filesystem::path count_file_;
  double joined_s_ = 0;
};

nlohmann::json FakeRun::measure(std::uint32_t steps) {
  std::vector<double> wall_ms;
  std::vector<double> cpu_ms;
  caf::anon_send(actors_.master(), actors::start_atom::value);
  double before = own_cpu_s();
  for (std::uint32_t i = 0; i < steps; ++i) {
    const auto report = wait_for<actors::StepReport>();
    const double now = own_cpu_s();
    if (i >= unmeasured_steps) {
      wall_ms.push_back(1e3 * report.duration.count());
      cpu_ms.push_back(1e3 * (now - before));
    }
    before = now;
  }
  wait_for<actors::RunEnd>();
  return {{"messages", 2 * orders_of_steps() / steps},
          {"master_cpu_ms", summary(cpu_ms)},
          {"step_ms", summary(wall_ms)},
          {"joined_s", joined_s_}};
}

/// Returns the numbers of devices that are measured: powers of four times 16,
/// then `largest`.
std::vector<std::uint32_t> sizes_up_to(std::uint32_t largest) {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t size = 16; size < largest; size *= 4)
    sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

/// Returns the exponent of growth from the smaller to the larger size.
double exponent(const nlohmann::json& small, const nlohmann::json& large,
                const std::function<double(const nlohmann::json&)>& of) {
  return std::log(of(large) / of(small))
         / std::log(large.at("devices").get<double>()
                    / small.at("devices").get<double>());
}

} // namespace

nlohmann::json bench_scale(const Options& options) {
  constexpr std::uint32_t devices_of_a_worker = 8;
  auto card = read_card(options);
  card["model"]["num_hidden_layers"] = 1; // 1,024 of them must fit this host
  card["model"]["hidden_size"] = 32;
  card["model"]["intermediate_size"] = 32;
  const CardFolder folder(card);
  const auto steps
    = unmeasured_steps + static_cast<std::uint32_t>(options.runs);
  nlohmann::json sizes = nlohmann::json::array();
  for (const char* plan : {"data_parallel", "separation"})
    for (const std::uint32_t devices : sizes_up_to(options.devices)) {
      const Size size{devices, devices / devices_of_a_worker, plan};
      auto measured = FakeRun(folder, size, steps).measure(steps);
      measured["devices"] = size.devices;
      measured["workers"] = size.workers;
      measured["plan"] = plan;
      std::fprintf(stderr, "%s\n", measured.dump().c_str());
      sizes.push_back(std::move(measured));
    }
  const auto messages = [](const nlohmann::json& size) {
    return size.at("messages").get<double>();
  };
  const auto cpu = [](const nlohmann::json& size) {
    return size.at("master_cpu_ms").at("median").get<double>();
  };
  const auto largest = sizes_up_to(options.devices).size() - 1;
  const auto name = "master_cpu_ms_" + std::to_string(options.devices);
  const auto& spread = sizes.at(largest).at("master_cpu_ms");
  nlohmann::json document{{name, spread.at("median")},
                          {name + "_min", spread.at("min")},
                          {name + "_max", spread.at("max")},
                          {"n", options.runs}};
  if (largest > 1) {
    document["exponent_of_messages"]
      = exponent(sizes[1], sizes[largest], messages);
    document["exponent_of_master_cpu"]
      = exponent(sizes[1], sizes[largest], cpu);
  }
  document["sizes"] = std::move(sizes);
  return document;
}

} // namespace troupe::bench
