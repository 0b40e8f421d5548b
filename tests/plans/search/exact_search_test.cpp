// Branch and bound against enumeration of every option at every position.
#include "plans/search/exact_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace troupe::plans {
namespace {

using Random = std::mt19937_64;

/// A PPO-shaped instance of random times, sizes and memory.
struct SmallInstance {
  ExactInstance exact;
  std::vector<std::vector<std::uint64_t>> held, active; ///< by call and option
  std::uint64_t memory = 100;
  double move = 0;
  bool uneven = false; ///< moves depend on options and positions
  bool shares = false; ///< calls of one replica wait for one move

  bool fits(const SpacePoint& point) const {
    for (std::uint32_t device = 0; device < exact.num_devices; ++device) {
      std::uint64_t sum = 0, most = 0;
      for (std::size_t i = 0; i < exact.calls.size(); ++i) {
        const auto option = point.options[i];
        if (option == not_chosen)
          continue;
        const auto count = exact.calls[i].options[option].num_devices;
        if (device < point.positions[i] || device >= point.positions[i] + count)
          continue;
        sum += held[i][option];
        most = std::max(most, active[i][option]);
      }
      if (sum + most > memory)
        return false;
    }
    return true;
  }
  double move_s(std::uint32_t call, const SpacePoint& point) const {
    if (shares && is_paid(call, point))
      return 0;
    const auto home = static_cast<std::size_t>(exact.calls[call].home);
    if (point.options[call] == point.options[home]
        && point.positions[call] == point.positions[home])
      return 0;
    return uneven
             ? least_move_s(call, point)
                 + 0.1 * move
                     * double(
                       (point.positions[call] + 2 * point.positions[home]) % 3)
             : move;
  }
  /// Does not depend on positions.
  double least_move_s(std::uint32_t call, const SpacePoint& point) const {
    const auto home = static_cast<std::size_t>(exact.calls[call].home);
    const auto option = point.options[call], other = point.options[home];
    if (option == other || (shares && is_paid(call, point)))
      return 0;
    return move * double((5 * option + 3 * other + call) % 7) / 3;
  }
  /// Returns whether an earlier call waits for the same move.
  bool is_paid(std::uint32_t call, const SpacePoint& point) const {
    for (std::uint32_t i = 0; i < call; ++i)
      if (exact.calls[i].home == exact.calls[call].home
          && !exact.calls[i].trains && point.options[i] != not_chosen
          && point.options[i] == point.options[call]
          && point.positions[i] == point.positions[call])
        return true;
    return false;
  }
};

void add_call(SmallInstance& small, Random& random, std::int32_t home,
              bool trains) {
  ExactCall call{.home = home, .trains = trains};
  const auto work = 1.0 + double(random() % 100);
  std::vector<std::uint64_t> held, active;
  for (std::uint32_t count = 1; count <= small.exact.num_devices; count *= 2)
    if (random() % 4 != 0 || count == 1)
      call.options.push_back(
        {count, work / std::pow(count, 0.5 + double(random() % 50) / 100)});
  if (home < 0) { // one of them with weights loaded from host memory
    call.options.push_back(call.options[random() % call.options.size()]);
    call.options.back().comes_s = double(1 + random() % 30);
  }
  std::ranges::stable_sort(call.options, {}, &ExactOption::seconds);
  for (const auto& option : call.options) {
    const auto weights
      = (trains ? 60 : 20) / option.num_devices + random() % 10;
    const bool leaves = option.comes_s > 0;
    held.push_back(leaves ? 0 : weights);
    active.push_back(random() % 40 + (leaves ? weights : 0));
  }
  small.exact.calls.push_back(std::move(call));
  small.held.push_back(std::move(held));
  small.active.push_back(std::move(active));
}

/// Gives the instance its aligned positions, its moves and its memory.
void add_rules(SmallInstance& small) {
  small.exact.align = [](std::uint32_t from, std::uint32_t count) {
    return (from + count - 1) / count * count;
  };
  small.exact.move_s = [&small](std::uint32_t call, const SpacePoint& point) {
    return small.move_s(call, point);
  };
  small.exact.fits
    = [&small](const SpacePoint& point) { return small.fits(point); };
}

void make_instance(SmallInstance& small, std::uint64_t seed) {
  Random random(seed);
  small.exact.num_devices = random() % 3 == 0 ? 2 : 4;
  small.move = double(random() % 20);
  small.memory = 60 + random() % 140;
  add_call(small, random, 4, false); // actor_gen
  add_call(small, random, -1, false);
  add_call(small, random, -1, false);
  add_call(small, random, 5, false); // critic_inf
  add_call(small, random, 4, true);
  add_call(small, random, 5, true);
  small.exact.levels = {{0}, {1, 2, 3}, {4, 5}};
  add_rules(small);
}

/// Enumerates every option at every position; 0 if nothing fits.
class Enumeration {
public:
  explicit Enumeration(const SmallInstance& small) : small_(small) {
    point_.options.assign(small.exact.calls.size(), not_chosen);
    point_.positions.assign(small.exact.calls.size(), 0);
  }
  double best() {
    choose(small_.exact.calls.size());
    return best_;
  }
  /// Adds up the levels of one plan.
  static double seconds_at(const SmallInstance& small,
                           const SpacePoint& point) {
    Enumeration one(small);
    one.point_ = point;
    return one.levels_s();
  }

private:
  /// Orders calls from the last to the first: training comes first.
  void choose(std::size_t left) {
    if (left == 0) {
      const auto seconds = seconds_of();
      best_ = best_ == 0 ? seconds : std::min(best_, seconds);
      return;
    }
    const auto call = left - 1;
    const auto& options = small_.exact.calls[call].options;
    for (std::uint32_t i = 0; i < options.size(); ++i) {
      const auto count = options[i].num_devices;
      for (std::uint32_t at = 0; at + count <= small_.exact.num_devices;
           at += count) {
        point_.options[call] = i;
        point_.positions[call] = at;
        if (small_.fits(point_))
          choose(left - 1);
      }
    }
    point_.options[call] = not_chosen;
  }

  std::uint32_t devices_of(std::uint32_t call) const {
    const auto count
      = small_.exact.calls[call].options[point_.options[call]].num_devices;
    return ((1u << count) - 1) << point_.positions[call];
  }
  /// Makes generation wait for its move; scoring waits only for a move that
  /// generation, or its dependencies, cannot overlap.
  bool waits_for_move(std::uint32_t call) const {
    const auto home = small_.exact.calls[call].home;
    if (home < 0 || small_.exact.calls[call].trains)
      return false;
    const auto both
      = devices_of(call) | devices_of(static_cast<std::uint32_t>(home));
    return call == 0 || (both & devices_of(0)) != 0;
  }

  /// Adds reloads after generation; elsewhere planes are loaded meanwhile.
  double reload_s(std::uint32_t call) const {
    const bool waits = call == 0 || (devices_of(call) & devices_of(0)) != 0;
    return waits
             ? small_.exact.calls[call].options[point_.options[call]].comes_s
             : 0;
  }

  double seconds_of() const {
    return small_.exact.step_s ? small_.exact.step_s(point_) : levels_s();
  }
  double levels_s() const {
    double sum = 0;
    for (const auto& level : small_.exact.levels) {
      std::vector<double> seconds;
      std::vector<std::uint32_t> positions, counts;
      for (const auto call : level) {
        const auto& one = small_.exact.calls[call];
        const auto& option = one.options[point_.options[call]];
        seconds.push_back(
          option.seconds + reload_s(call)
          + (waits_for_move(call) ? small_.move_s(call, point_) : 0));
        positions.push_back(point_.positions[call]);
        counts.push_back(option.num_devices);
      }
      sum += level_makespan(seconds, positions, counts);
    }
    return sum;
  }

  const SmallInstance& small_;
  SpacePoint point_;
  double best_ = 0;
};

TEST(ExactSearch, EqualsEnumerationOn500RandomInstances) {
  int without_plan = 0, reloaded = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SmallInstance small;
    make_instance(small, seed);
    const auto found = exact_search(small.exact, 0, nullptr, ~0ull);
    const auto best = Enumeration(small).best();
    EXPECT_TRUE(found.proved) << "seed " << seed;
    EXPECT_EQ(found.found, best > 0) << "seed " << seed;
    without_plan += best == 0;
    if (!found.found || best == 0)
      continue;
    EXPECT_NEAR(found.seconds, best, 1e-9 * best) << "seed " << seed;
    EXPECT_LE(found.lower_bound_s, best * (1 + 1e-12)) << "seed " << seed;
    EXPECT_TRUE(small.fits(found.point)) << "seed " << seed;
    for (const std::size_t call : {1, 2})
      reloaded
        += small.exact.calls[call].options[found.point.options[call]].comes_s
           > 0;
  }
  EXPECT_LT(without_plan, 250) << "most instances should have a plan";
  EXPECT_GT(reloaded, 50) << "weights leave in some of the best";
}

/// In the first level every move counts, so an optimum is often where one is
/// short; elsewhere calls are also in an order in which the moved one is first.
TEST(ExactSearch, EqualsEnumerationWhereMovesAreUneven) {
  std::uint64_t nodes = 0, nodes_without = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SmallInstance small;
    make_instance(small, seed);
    small.uneven = true;
    small.move = double(5 + seed % 40);
    small.exact.levels[1] = seed % 2 == 0 ? std::vector<std::uint32_t>{3, 1, 2}
                                          : std::vector<std::uint32_t>{1, 3, 2};
    const auto without = exact_search(small.exact, 0, nullptr, ~0ull);
    small.exact.least_move_s
      = [&small](std::uint32_t call, const SpacePoint& point) {
          return small.least_move_s(call, point);
        };
    const auto found = exact_search(small.exact, 0, nullptr, ~0ull);
    const auto best = Enumeration(small).best();
    EXPECT_TRUE(found.proved) << "seed " << seed;
    ASSERT_EQ(found.found, best > 0) << "seed " << seed;
    EXPECT_NEAR(found.seconds, best, 1e-9 * best) << "seed " << seed;
    EXPECT_NEAR(without.seconds, best, 1e-9 * best) << "seed " << seed;
    nodes += found.nodes;
    nodes_without += without.nodes;
  }
  EXPECT_LT(nodes, nodes_without);
}

/// GRPO: the actor generates and then computes log-probabilities, perhaps with
/// the replica to which its weights moved for generation.
TEST(ExactSearch, EqualsEnumerationWhereTwoLevelsShareAMove) {
  int shared = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SmallInstance small;
    small.exact.num_devices = 4;
    small.shares = true;
    small.move = double(1 + random() % 40);
    small.memory = 80 + random() % 140;
    add_call(small, random, 3, false);                 // actor_gen
    add_call(small, random, -1, false);                // ref_inf
    small.exact.calls.push_back(small.exact.calls[0]); // actor_inf
    small.held.push_back(small.held[0]);
    small.active.push_back(small.active[0]);
    add_call(small, random, 3, true);
    small.exact.levels = {{0}, {1, 2}, {3}};
    add_rules(small);
    const auto found = exact_search(small.exact, 0, nullptr, ~0ull);
    const auto best = Enumeration(small).best();
    EXPECT_TRUE(found.proved) << "seed " << seed;
    ASSERT_EQ(found.found, best > 0) << "seed " << seed;
    if (!found.found)
      continue;
    EXPECT_NEAR(found.seconds, best, 1e-9 * best) << "seed " << seed;
    shared += small.is_paid(2, found.point);
  }
  EXPECT_GT(shared, 50) << "in many optima one move serves two levels";
}

TEST(ExactSearch, AMoveDuringGenerationCostsNothing) {
  SmallInstance small;
  small.exact.num_devices = 4;
  small.move = 5;
  small.memory = 1000;
  const auto add
    = [&](std::vector<ExactOption> options, std::int32_t home, bool trains) {
        small.held.emplace_back(options.size(), 0);
        small.active.emplace_back(options.size(), 0);
        small.exact.calls.push_back(
          {.options = std::move(options), .home = home, .trains = trains});
      };
  add({{1, 10}}, 4, false);        // generation: one device
  add({{1, 1}}, -1, false);        // reward
  add({{1, 1}}, -1, false);        // ref
  add({{1, 1}, {2, 4}}, 5, false); // critic: moved, or where it trains
  add({{1, 10}}, 4, true);         // actor
  add({{2, 10}}, 5, true);         // critic
  small.exact.levels = {{0}, {1, 2, 3}, {4, 5}};
  small.exact.align = [](std::uint32_t from, std::uint32_t count) {
    return (from + count - 1) / count * count;
  };
  small.exact.move_s = [&small](std::uint32_t call, const SpacePoint& point) {
    return call == 0 || point.options[call] == 1 ? 0 : small.move;
  };
  small.exact.fits = [](const SpacePoint&) { return true; };
  const auto found = exact_search(small.exact, 0, nullptr, ~0ull);
  // generation 10, while the critic's weights move; scoring 1; training 10
  EXPECT_TRUE(found.proved);
  EXPECT_DOUBLE_EQ(found.seconds, 21);
  EXPECT_DOUBLE_EQ(Enumeration(small).best(), 21);
}

TEST(ExactSearch, TheSimulatorDecides) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SmallInstance small;
    make_instance(small, seed);
    small.exact.step_s = [&small](const SpacePoint& point) {
      // some plans take longer than the sum of their levels
      const auto extra = (point.options[0] + point.positions[3]) % 3;
      return Enumeration::seconds_at(small, point) * (1 + 0.1 * extra);
    };
    const auto found = exact_search(small.exact, 0, nullptr, ~0ull);
    EXPECT_TRUE(found.proved);
    const auto best = Enumeration(small).best();
    EXPECT_EQ(found.found, best > 0);
    EXPECT_NEAR(found.seconds, best, 1e-9 * best) << "seed " << seed;
  }
}

TEST(ExactSearch, AKnownPlanIsReturnedUnlessBeaten) {
  SmallInstance small;
  make_instance(small, 11);
  const auto first = exact_search(small.exact, 0, nullptr, ~0ull);
  ASSERT_TRUE(first.found);
  const auto again = exact_search(small.exact, first.seconds, nullptr, ~0ull);
  EXPECT_FALSE(again.found) << "nothing is faster than the optimum";
  EXPECT_TRUE(again.proved);
}

TEST(ExactSearch, AStoppedSearchProvesNothing) {
  SmallInstance small;
  make_instance(small, 11);
  const std::atomic<bool> stop = true;
  const auto found = exact_search(small.exact, 0, &stop, ~0ull);
  EXPECT_FALSE(found.proved);
  EXPECT_GT(found.lower_bound_s, 0) << "the bound is there all the same";
}

} // namespace
} // namespace troupe::plans
