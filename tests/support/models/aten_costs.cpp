#include "aten_costs.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace troupe::testing {

namespace {

using std::string_view_literals::operator""sv;

constexpr std::array cost_none{
  "_conj"sv,     "_reshape_alias"sv, "_unsafe_view"sv,
  "alias"sv,     "as_strided"sv,     "detach"sv,
  "empty"sv,     "empty_like"sv,     "empty_strided"sv,
  "expand"sv,    "narrow"sv,         "permute"sv,
  "resize"sv,    "resolve_conj"sv,   "select"sv,
  "slice"sv,     "squeeze"sv,        "t"sv,
  "transpose"sv, "unsqueeze"sv,      "view"sv};
constexpr std::array cost_parts{
  "clone"sv,       "contiguous"sv, "index_put"sv, "item"sv,    "logsumexp"sv,
  "masked_fill"sv, "ones"sv,       "outer"sv,     "reshape"sv, "rsub"sv,
  "softmax"sv,     "square"sv,     "to"sv,        "zeros"sv,   "zeros_like"sv};
constexpr std::array cost_kernel{"_fused_rms_norm"sv,
                                 "_softmax"sv,
                                 "_to_copy"sv,
                                 "add"sv,
                                 "addcmul"sv,
                                 "addmm"sv,
                                 "amax"sv,
                                 "arange"sv,
                                 "bmm"sv,
                                 "cat"sv,
                                 "clamp"sv,
                                 "clamp_max"sv,
                                 "copy"sv,
                                 "div"sv,
                                 "exp"sv,
                                 "fill"sv,
                                 "ge"sv,
                                 "gelu"sv,
                                 "gt"sv,
                                 "le"sv,
                                 "log"sv,
                                 "logical_and"sv,
                                 "logical_or"sv,
                                 "lt"sv,
                                 "masked_fill_"sv,
                                 "mean"sv,
                                 "mm"sv,
                                 "mul"sv,
                                 "mv"sv,
                                 "neg"sv,
                                 "pow"sv,
                                 "rsqrt"sv,
                                 "sigmoid"sv,
                                 "silu"sv,
                                 "silu_backward"sv,
                                 "sqrt"sv,
                                 "sub"sv,
                                 "sum"sv,
                                 "tanh"sv,
                                 "where"sv,
                                 "zero"sv};
constexpr std::array cost_picks{"gather"sv, "index"sv, "index_select"sv};
constexpr std::array cost_places{"_index_put_impl"sv, "index_add"sv,
                                 "index_copy"sv, "index_fill"sv,
                                 "scatter_add"sv};

bool is_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

} // namespace

std::optional<AtenCost> aten_cost(std::string_view name) {
  if (is_of(cost_none, name))
    return AtenCost::none;
  if (is_of(cost_parts, name))
    return AtenCost::parts;
  if (is_of(cost_kernel, name))
    return AtenCost::kernel;
  if (is_of(cost_picks, name))
    return AtenCost::picks;
  if (is_of(cost_places, name))
    return AtenCost::places;
  if (name == "_grouped_mm")
    return AtenCost::groups;
  if (name == "_local_scalar_dense")
    return AtenCost::download;
  return std::nullopt;
}

} // namespace troupe::testing
