// Changes of a layout: by short words, and to another number of devices.
#include "config/yaml/yaml_tree.hpp"
#include "plans/advise/expressible.hpp"
#include "plans/plan/plan_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

const std::vector<std::string>& layout_words() {
  static const std::vector<std::string> words
    = {"tp",   "pp",      "train_tp",           "train_pp",
       "zero", "offload", "micro_batch_tokens", "share",
       "lag"};
  return words;
}

[[noreturn]] void refuse_change(const std::string& key,
                                const std::string& value,
                                const std::string& expected,
                                const std::string& hint = "") {
  throw ConfigError({.place = {"command line", 0},
                     .path = "--what-if " + key,
                     .expected = expected,
                     .got = "'" + value + "'",
                     .hint = hint});
}

void cut_again(LayoutPart& part, std::uint32_t tp, std::uint32_t pp,
               const std::string& key, const std::string& value) {
  if (part.count == 0)
    return;
  if (tp == 0 || pp == 0 || part.count % (std::uint64_t{tp} * pp) != 0)
    refuse_change(key, value,
                  fmt::format("a divisor of {} devices", part.count));
  part.strategy.tp = tp;
  part.strategy.pp = pp;
  part.strategy.dp = part.count / tp / pp;
  if (part.strategy.dp == 1 || (tp > 1 && part.strategy.zero == Zero::z3))
    part.strategy.zero = part.strategy.dp == 1 ? Zero::none : Zero::z1;
}

template <class Change>
void change_models(SystemLayout& layout, bool trained_only,
                   const Change& change) {
  for (auto* part :
       {&layout.actor, &layout.critic, &layout.ref, &layout.reward})
    if (part->count > 0
        && (!trained_only || part == &layout.actor || part == &layout.critic))
      change(*part);
}

void change_offload(SystemLayout& layout, const std::string& value) {
  if (value != "none" && value != "optimizer" && value != "all")
    refuse_change("offload", value, "none, optimizer or all");
  change_models(layout, /*trained_only=*/true, [&](LayoutPart& part) {
    part.offload_optimizer = value != "none";
    part.offload_weights = value == "all";
  });
}

} // namespace

SystemFlag parse_change(const std::string& word) {
  const auto equal = word.find('=');
  if (equal == word.npos)
    throw ConfigError({.place = {"command line", 0},
                       .path = "--what-if",
                       .expected = "KEY=VALUE",
                       .got = "'" + word + "'",
                       .hint = "tp=4"});
  return {word.substr(0, equal), word.substr(equal + 1)};
}

bool is_layout_word(const std::string& key) {
  const auto& words = layout_words();
  return std::ranges::find(words, key) != words.end();
}

SystemLayout changed_layout(SystemLayout layout, const std::string& key,
                            const std::string& value) {
  if (!is_layout_word(key))
    refuse_change(key, value,
                  "one of tp, pp, train_tp, train_pp, zero, offload, "
                  "micro_batch_tokens, share, lag, or a flag of the system",
                  quoted_nearest(key, layout_words()));
  if (key == "offload") {
    change_offload(layout, value);
    return layout;
  }
  std::uint32_t whole = 0;
  if (key == "share"
      && !(read_whole(value, layout.engine_share) && layout.engine_share >= 0
           && layout.engine_share <= 1))
    refuse_change(key, value, "a number from 0 to 1");
  if (key != "share" && !read_whole(value, whole))
    refuse_change(key, value, "a whole number");
  auto& engine = layout.generation;
  if (key == "tp")
    cut_again(engine, whole, engine.strategy.pp, key, value);
  else if (key == "pp")
    cut_again(engine, engine.strategy.tp, whole, key, value);
  else if (key == "lag")
    layout.lag = whole;
  else if (key != "share")
    change_models(layout, key == "zero", [&](LayoutPart& part) {
      if (key == "train_tp")
        cut_again(part, whole, part.strategy.pp, key, value);
      else if (key == "train_pp")
        cut_again(part, part.strategy.tp, whole, key, value);
      else if (key == "zero")
        part.strategy.zero = part.strategy.dp == 1 || whole == 0 ? Zero::none
                             : whole >= 3                        ? Zero::z3
                                                                 : Zero::z1;
      else
        part.micro_batch_tokens = whole;
    });
  return layout;
}

SystemLayout resized(SystemLayout layout, std::uint32_t from,
                     std::uint32_t to) {
  for (auto* part : {&layout.generation, &layout.actor, &layout.critic,
                     &layout.ref, &layout.reward}) {
    auto& strategy = part->strategy;
    const auto dp = std::uint64_t{strategy.dp} * to;
    const auto first = std::uint64_t{part->first} * to;
    if (part->count > 0 && (dp % from != 0 || first % from != 0))
      throw ConfigError(
        {.place = {"command line", 0},
         .path = "--gpus",
         .expected = fmt::format("a number of devices to which {} can be cut",
                                 print(layout)),
         .got = std::to_string(to),
         .hint = fmt::format("a multiple of {}", from)});
    strategy.dp = static_cast<std::uint32_t>(dp / from);
    part->first = static_cast<std::uint32_t>(first / from);
    part->count = part->count > 0 ? strategy.num_devices() : 0;
    if (strategy.dp == 1)
      strategy.zero = Zero::none;
  }
  return layout;
}

} // namespace troupe::plans
