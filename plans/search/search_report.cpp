// Names of methods, and a search's result in a sentence.
#include "config/base/error.hpp"
#include "plans/plan/plan_names.hpp"
#include "plans/search/search.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

namespace {

/// Returns four digits, or all before the point: an exponent is hard to read.
std::string seconds_text(double seconds) {
  return seconds < 1e4 ? fmt::format("{:.4g}", seconds)
                       : fmt::format("{:.0f}", seconds);
}

} // namespace

std::string_view to_string(SearchMethod method) {
  switch (method) {
  case SearchMethod::automatic:
    return "auto";
  case SearchMethod::exact:
    return "exact";
  case SearchMethod::mcmc:
    return "mcmc";
  case SearchMethod::descent:
    return "descent";
  }
  return "?";
}

SearchMethod parse_search_method(const std::string& name) {
  std::vector<std::string> names;
  for (const auto method : {SearchMethod::automatic, SearchMethod::exact,
                            SearchMethod::mcmc, SearchMethod::descent}) {
    if (name == to_string(method))
      return method;
    names.emplace_back(to_string(method));
  }
  throw ConfigError({.place = {"command line", 0},
                     .path = "--method",
                     .expected = "auto, exact, mcmc or descent",
                     .got = "'" + name + "'",
                     .hint = quoted_nearest(name, names)});
}

double SearchResult::gap() const {
  return lower_bound_s > 0 ? std::max(0.0, best.step_s / lower_bound_s - 1)
                           : 0.0;
}

std::string_view proof_words(const SearchResult& result) {
  if (!result.proved)
    return "";
  return result.packed_only ? ", proved of packed meshes" : ", proved";
}

std::string proof_sentence(const SearchResult& result) {
  if (result.proved)
    return fmt::format(
      "proved: no plan of whole calls{} simulates faster, with moves in closed "
      "form{}",
      result.packed_only ? " on packed meshes" : "",
      result.packed_only
        ? " (meshes packed from either end of the line of devices); the lower "
          "bound holds wherever meshes lie"
        : "");
  const auto& best = result.best.plan;
  const bool cut = std::ranges::any_of(
    best.calls, [](const auto& call) { return call.second.chunks > 1; });
  std::string_view why = "the search ended before it had tried every plan";
  if (cut)
    why = "calls of the best plan run in chunks";
  else if (!best.lag.empty())
    why = "calls of the best plan lag";
  else if (result.end == SearchEnd::refined)
    why = "it is faster than the plan of the proof once moves are counted "
          "transfer by transfer";
  else if (result.method != "exact")
    why = "this search walks from plan to plan";
  return fmt::format("not proved: {}; what holds is the lower bound", why);
}

std::string summary(const SearchResult& result) {
  return fmt::format("best {} s, lower bound {} s, gap {:.1f} %{}",
                     seconds_text(result.best.step_s),
                     seconds_text(result.lower_bound_s), 100 * result.gap(),
                     proof_words(result));
}

std::vector<std::string> next_best_lines(const SearchResult& result) {
  std::vector<std::string> lines;
  for (const auto& other : result.next)
    lines.push_back(fmt::format(
      "next best: {} s, {:.1f} % more ({})", seconds_text(other.step_s),
      100 * (other.step_s / result.best.step_s - 1), other.origin));
  return lines;
}

} // namespace troupe::plans
