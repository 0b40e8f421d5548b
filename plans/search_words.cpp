// Names of methods, and a search's result in a sentence.
#include "config/error.hpp"
#include "plans/nearest.hpp"
#include "plans/search.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::plans {

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

std::string summary(const SearchResult& result) {
  return fmt::format("best {:.4g} s, lower bound {:.4g} s, gap {:.1f} %{}",
                     result.best.step_s, result.lower_bound_s,
                     100 * result.gap(), proof_words(result));
}

} // namespace troupe::plans
