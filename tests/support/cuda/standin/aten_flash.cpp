// Flash attention over packed sequences for the CPU, which libtorch has for
// GPUs only: slow, in fp32, sequence by sequence.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <limits>
#include <optional>
#include <tuple>

namespace {

using at::Tensor;

/// One packed sequence: its rows among queries and among keys.
struct Sequence {
  std::int64_t first_query;
  std::int64_t queries;
  std::int64_t first_key;
  std::int64_t keys;
};

std::vector<Sequence> sequences_of(const Tensor& query_starts,
                                   const Tensor& key_starts) {
  const Tensor q = query_starts.to(at::kLong);
  const Tensor k = key_starts.to(at::kLong);
  std::vector<Sequence> found;
  for (std::int64_t s = 0; s + 1 < q.size(0); ++s) {
    const auto at = [&](const Tensor& x, std::int64_t i) {
      return x[i].item<std::int64_t>();
    };
    found.push_back(
      {at(q, s), at(q, s + 1) - at(q, s), at(k, s), at(k, s + 1) - at(k, s)});
  }
  return found;
}

/// Numbers of keys that a query sees before its own place, and after it; -1:
/// all.
struct Window {
  std::int64_t left;
  std::int64_t right;
};

/// Returns true where a query does not see a key, [queries, keys]. The last
/// query stands at the last key.
Tensor hidden(const Sequence& s, const Window& window) {
  const Tensor place = at::arange(s.queries).unsqueeze(1) + s.keys - s.queries;
  const Tensor key = at::arange(s.keys).unsqueeze(0);
  Tensor out = at::zeros({s.queries, s.keys}, at::kBool);
  if (window.left >= 0)
    out = out.logical_or(key < place - window.left);
  if (window.right >= 0)
    out = out.logical_or(key > place + window.right);
  return out;
}

/// Returns heads of a sequence in fp32, [heads, rows, D], each as often as
/// heads of queries share it.
Tensor heads_of(const Tensor& x_TND, std::int64_t first, std::int64_t count,
                std::int64_t shared) {
  return x_TND.narrow(0, first, count)
    .to(at::kFloat)
    .transpose(0, 1)
    .repeat_interleave(shared, 0);
}

Tensor scores_of(const Tensor& q_ALD, const Tensor& k_AKD, double scale,
                 const Tensor& hidden_LK) {
  return (at::bmm(q_ALD, k_AKD.transpose(1, 2)) * scale)
    .masked_fill(hidden_LK, -std::numeric_limits<double>::infinity());
}

Window window_of(bool is_causal, std::optional<c10::SymInt> left,
                 std::optional<c10::SymInt> right) {
  return {left ? left->expect_int() : -1, is_causal ? 0
                                          : right   ? right->expect_int()
                                                    : -1};
}

double scale_of(std::optional<double> scale, const Tensor& query) {
  return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>
forward(const Tensor& query, const Tensor& key, const Tensor& value,
        const std::optional<Tensor>& query_starts,
        const std::optional<Tensor>& key_starts, c10::SymInt, c10::SymInt,
        double, bool is_causal, bool, std::optional<double> scale,
        std::optional<c10::SymInt> left, std::optional<c10::SymInt> right,
        const std::optional<Tensor>&, const std::optional<Tensor>&) {
  const std::int64_t shared = query.size(1) / key.size(1);
  Tensor out = at::zeros(query.sizes(), query.options());
  Tensor lse = at::zeros({query.size(1), query.size(0)}, at::kFloat);
  for (const Sequence& s : sequences_of(*query_starts, *key_starts)) {
    const Tensor scores = scores_of(
      heads_of(query, s.first_query, s.queries, 1),
      heads_of(key, s.first_key, s.keys, shared), scale_of(scale, query),
      hidden(s, window_of(is_causal, left, right)));
    const Tensor context = at::bmm(
      at::softmax(scores, 2), heads_of(value, s.first_key, s.keys, shared));
    out.narrow(0, s.first_query, s.queries).copy_(context.transpose(0, 1));
    lse.narrow(1, s.first_query, s.queries).copy_(at::logsumexp(scores, {2}));
  }
  const Tensor none = at::zeros({2}, at::kUInt64);
  return {out, lse, none, at::zeros({}, at::kUInt64), at::empty({0})};
}

/// Sums gradients over the query heads that share a key, [K, G, D].
Tensor shared_sum(const Tensor& d_AKD, std::int64_t shared) {
  return d_AKD.unflatten(0, {-1, shared}).sum(1).transpose(0, 1);
}

std::tuple<Tensor, Tensor, Tensor>
backward(const Tensor& d_out, const Tensor& query, const Tensor& key,
         const Tensor& value, const Tensor& out, const Tensor& lse,
         const Tensor& query_starts, const Tensor& key_starts, c10::SymInt,
         c10::SymInt, double, bool is_causal, const Tensor&, const Tensor&,
         std::optional<double> scale, std::optional<c10::SymInt> left,
         std::optional<c10::SymInt> right) {
  const std::int64_t shared = query.size(1) / key.size(1);
  const double factor = scale_of(scale, query);
  Tensor dq = at::zeros(query.sizes(), query.options());
  Tensor dk = at::zeros(key.sizes(), key.options());
  Tensor dv = at::zeros(value.sizes(), value.options());
  for (const Sequence& s : sequences_of(query_starts, key_starts)) {
    const auto of_queries = [&](const Tensor& x) {
      return heads_of(x, s.first_query, s.queries, 1);
    };
    const auto of_keys = [&](const Tensor& x) {
      return heads_of(x, s.first_key, s.keys, shared);
    };
    const Tensor q = of_queries(query);
    const Tensor d = of_queries(d_out);
    const Tensor p
      = at::exp(scores_of(q, of_keys(key), factor,
                          hidden(s, window_of(is_causal, left, right)))
                - lse.narrow(1, s.first_query, s.queries).unsqueeze(2));
    const Tensor dp = at::bmm(d, of_keys(value).transpose(1, 2));
    const Tensor delta = (d * of_queries(out)).sum(2, /*keepdim=*/true);
    const Tensor ds = p * (dp - delta) * factor;
    dq.narrow(0, s.first_query, s.queries)
      .copy_(at::bmm(ds, of_keys(key)).transpose(0, 1));
    dk.narrow(0, s.first_key, s.keys)
      .copy_(shared_sum(at::bmm(ds.transpose(1, 2), q), shared));
    dv.narrow(0, s.first_key, s.keys)
      .copy_(shared_sum(at::bmm(p.transpose(1, 2), d), shared));
  }
  return {dq, dk, dv};
}

} // namespace

TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("_flash_attention_forward", forward);
  m.impl("_flash_attention_backward", backward);
}
