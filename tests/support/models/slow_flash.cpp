#include "slow_flash.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::testing {

namespace {

/// One query of one head, with its keys and values in double.
struct FlashRow {
  std::int64_t token;
  std::int64_t head;
  std::int64_t kv_head;
  std::int64_t first_key;
  std::int64_t end_key;
};

using Rows = at::TensorAccessor<double, 3>;

at::Tensor slow_doubles(const at::Tensor& x) {
  return x.to(at::kDouble).contiguous();
}

void each_row(const models::FlashCall& call,
              const std::function<void(const FlashRow&)>& body) {
  const std::int64_t heads = call.queries_TAD.size(1);
  const std::int64_t shared = heads / call.keys_KGD.size(1);
  const auto query_starts = call.query_starts.accessor<std::int32_t, 1>();
  const auto key_starts = call.key_starts.accessor<std::int32_t, 1>();
  for (std::int64_t s = 0; s + 1 < query_starts.size(0); ++s)
    for (std::int64_t t = query_starts[s]; t < query_starts[s + 1]; ++t) {
      const std::int64_t end
        = key_starts[s + 1] - (query_starts[s + 1] - t) + 1;
      const std::int64_t first
        = call.seen_before < 0 ? 0 : end - 1 - call.seen_before;
      for (std::int64_t head = 0; head < heads; ++head)
        body({t, head, head / shared,
              std::max<std::int64_t>(key_starts[s], first), end});
    }
}

double slow_dot(const Rows& a, std::int64_t i, std::int64_t a_head,
                const Rows& b, std::int64_t j, std::int64_t b_head) {
  double sum = 0;
  for (std::int64_t d = 0; d < a.size(2); ++d)
    sum += a[i][a_head][d] * b[j][b_head][d];
  return sum;
}

void slow_add(Rows to, std::int64_t i, std::int64_t to_head, double factor,
              const Rows& from, std::int64_t j, std::int64_t from_head) {
  for (std::int64_t d = 0; d < to.size(2); ++d)
    to[i][to_head][d] += factor * from[j][from_head][d];
}

std::int64_t longest(const at::Tensor& starts) {
  return (starts.slice(0, 1) - starts.slice(0, 0, -1))
    .max()
    .item<std::int64_t>();
}

} // namespace

void SlowFlash::check(const models::FlashCall& call) const {
  for (const at::Tensor& x :
       {call.queries_TAD, call.keys_KGD, call.values_KGD}) {
    EXPECT_EQ(x.scalar_type(), type_);
    EXPECT_EQ(x.stride(2), 1);
  }
  const std::int64_t tokens = call.queries_TAD.size(0);
  const std::int64_t keys = call.keys_KGD.size(0);
  EXPECT_EQ(call.query_starts[-1].item<std::int64_t>(), tokens);
  EXPECT_EQ(call.key_starts[-1].item<std::int64_t>(), keys);
  EXPECT_EQ(call.most_queries, longest(call.query_starts));
  EXPECT_EQ(call.most_keys, longest(call.key_starts));
  copied_keys_ += keys - tokens;
}

models::FlashContext SlowFlash::forward(const models::FlashCall& call) const {
  check(call);
  ++forward_calls_;
  const at::Tensor q = slow_doubles(call.queries_TAD);
  const at::Tensor k = slow_doubles(call.keys_KGD);
  const at::Tensor v = slow_doubles(call.values_KGD);
  at::Tensor context = at::zeros_like(q);
  at::Tensor lse = at::empty({q.size(1), q.size(0)}, at::kFloat);
  each_row(call, [&](const FlashRow& row) {
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t j = row.first_key; j < row.end_key; ++j) {
      weights.push_back(
        std::exp(call.scale
                 * slow_dot(q.accessor<double, 3>(), row.token, row.head,
                            k.accessor<double, 3>(), j, row.kv_head)));
      sum += weights.back();
    }
    for (std::int64_t j = row.first_key; j < row.end_key; ++j)
      slow_add(context.accessor<double, 3>(), row.token, row.head,
               weights[static_cast<std::size_t>(j - row.first_key)] / sum,
               v.accessor<double, 3>(), j, row.kv_head);
    lse.accessor<float, 2>()[row.head][row.token]
      = static_cast<float>(std::log(sum));
  });
  return {context.to(type_), lse};
}

models::FlashGradients
SlowFlash::backward(const models::FlashCall& call,
                    const models::FlashContext& found,
                    const at::Tensor& d_context_TAD) const {
  check(call);
  ++backward_calls_;
  EXPECT_EQ(found.context_TAD.scalar_type(), type_);
  EXPECT_EQ(d_context_TAD.scalar_type(), type_);
  EXPECT_EQ(found.lse_AT.scalar_type(), at::kFloat);
  const at::Tensor q = slow_doubles(call.queries_TAD);
  const at::Tensor k = slow_doubles(call.keys_KGD);
  const at::Tensor v = slow_doubles(call.values_KGD);
  const at::Tensor o = slow_doubles(found.context_TAD);
  const at::Tensor d_o = slow_doubles(d_context_TAD);
  at::Tensor dq = at::zeros_like(q);
  at::Tensor dk = at::zeros_like(k);
  at::Tensor dv = at::zeros_like(v);
  const auto rows = [](const at::Tensor& x) { return x.accessor<double, 3>(); };
  each_row(call, [&](const FlashRow& row) {
    const double delta
      = slow_dot(rows(o), row.token, row.head, rows(d_o), row.token, row.head);
    const double lse = found.lse_AT.accessor<float, 2>()[row.head][row.token];
    for (std::int64_t j = row.first_key; j < row.end_key; ++j) {
      const double score
        = slow_dot(rows(q), row.token, row.head, rows(k), j, row.kv_head);
      const double p = std::exp(call.scale * score - lse);
      const double dp
        = slow_dot(rows(d_o), row.token, row.head, rows(v), j, row.kv_head);
      const double ds = p * (dp - delta) * call.scale;
      slow_add(rows(dq), row.token, row.head, ds, rows(k), j, row.kv_head);
      slow_add(rows(dk), j, row.kv_head, ds, rows(q), row.token, row.head);
      slow_add(rows(dv), j, row.kv_head, p, rows(d_o), row.token, row.head);
    }
  });
  return {dq.to(type_), dk.to(type_), dv.to(type_)};
}

} // namespace troupe::testing
