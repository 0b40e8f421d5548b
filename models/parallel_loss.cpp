#include "models/parallel_loss.hpp"

#include "models/host_math.hpp"
#include "models/host_simd.hpp"
#include "models/linear.hpp"
#include "models/soft_cap.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::models {

namespace {

constexpr std::int64_t loss_chunk_floats = 1 << 22; // 16 MiB of logits
constexpr std::int64_t loss_keep_floats = std::int64_t{1} << 26; // 256 MiB
constexpr std::int64_t loss_grain_floats = 1 << 13; // worth a thread

std::int64_t loss_chunk_rows(std::int64_t vocab) {
  return std::max<std::int64_t>(12, loss_chunk_floats / vocab / 12 * 12);
}

std::int64_t loss_grain_rows(std::int64_t width) {
  return std::max<std::int64_t>(1, loss_grain_floats / width);
}

// Rows `first ..` of the wanted positions, gathered.
void loss_gather(const WantedTokens& wanted, std::int64_t first,
                 std::int64_t rows, std::int64_t width, const float* from,
                 float* to) {
  for (std::int64_t r = 0; r < rows; ++r)
    std::copy_n(
      from + wanted.positions_R[static_cast<std::size_t>(first + r)] * width,
      width, to + r * width);
}

struct RowStatistics {
  float logprob;
  float entropy;
  float lse;
};

// A row as one peer's part of the vocabulary shows it.
struct RowPart {
  float top;      // largest logit
  float sum;      // of e^x, x = scaled logit below the largest
  float weighted; // of e^x x
  float target;   // its logit, or -inf where another peer has it
};
constexpr std::int64_t row_part_floats = sizeof(RowPart) / sizeof(float);

// `target` counts from the first row here and may be outside.
RowPart loss_row(const float* logits, std::int64_t vocab, std::int64_t target,
                 float inverse_temperature) {
  float top = logits[0];
#pragma omp simd reduction(max : top)
  for (std::int64_t j = 0; j < vocab; ++j)
    top = logits[j] > top ? logits[j] : top;
  float sum = 0;
  float weighted = 0; // sum of e^x x, x = scaled logit below the largest
#pragma omp simd reduction(+ : sum, weighted)
  for (std::int64_t j = 0; j < vocab; ++j) {
    const float x = (logits[j] - top) * inverse_temperature;
    const float e = fast_exp(x);
    sum += e;
    weighted += e * x;
  }
  const bool here = target >= 0 && target < vocab;
  return {top, sum, weighted,
          here ? logits[target] : -std::numeric_limits<float>::infinity()};
}

// The row from its parts, `stride` apart, added up in peer order.
RowStatistics loss_join(const RowPart* parts, std::uint32_t peers,
                        std::int64_t stride, float inverse_temperature) {
  float top = parts[0].top;
  float target = parts[0].target;
  for (std::uint32_t p = 1; p < peers; ++p) {
    top = std::max(top, parts[p * stride].top);
    target = std::max(target, parts[p * stride].target);
  }
  float sum = 0;
  float weighted = 0;
  for (std::uint32_t p = 0; p < peers; ++p) {
    const RowPart& part = parts[p * stride];
    const float below = (part.top - top) * inverse_temperature;
    const float scale = std::exp(below);
    sum += scale * part.sum;
    weighted += scale * (part.weighted + below * part.sum);
  }
  const float log_sum = std::log(sum);
  const float lse = top * inverse_temperature + log_sum;
  return {(target - top) * inverse_temperature - log_sum,
          log_sum - weighted / sum, lse};
}

// The slope of cap tanh(x / cap) from its value.
[[gnu::always_inline]] inline float loss_cap_slope(float capped,
                                                   float inverse_cap) {
  const float t = capped * inverse_cap;
  return 1.0F - t * t;
}

struct RowGradient {
  float d_logprob;
  float d_entropy;
  float entropy;
  float lse;
  float inverse_cap; // of the logits; 0: they have no cap
};

// logits -> their gradient, in place.
void loss_row_backward(float* logits, std::int64_t vocab, std::int64_t target,
                       float inverse_temperature, const RowGradient& row) {
  const bool here = target >= 0 && target < vocab;
  const float inverse_cap = row.inverse_cap;
  const float target_slope
    = here ? loss_cap_slope(logits[target], inverse_cap) : 0.0F;
#pragma omp simd
  for (std::int64_t j = 0; j < vocab; ++j) {
    const float logp = logits[j] * inverse_temperature - row.lse;
    const float p = fast_exp(logp);
    logits[j] = -inverse_temperature * p
                * (row.d_logprob + row.d_entropy * (logp + row.entropy))
                * loss_cap_slope(logits[j], inverse_cap);
  }
  if (here)
    logits[target] += inverse_temperature * row.d_logprob * target_slope;
}

std::int64_t loss_target(const VocabularyHead& head, const WantedTokens& wanted,
                         std::int64_t r) {
  return wanted.targets_R[static_cast<std::size_t>(r)] - head.first_token;
}

// Parts of `rows` rows -> statistics of rows first .. of all.
void loss_statistics(const VocabularyHead& head, RowPart* parts_R,
                     RowPart* all_PR, std::int64_t first, std::int64_t rows,
                     float inverse, const TokenStatistics& found) {
  if (!head.peers.alone())
    head.peers.collect(&parts_R->top, &all_PR->top, rows * row_part_floats,
                       "vocabulary statistics");
  for (std::int64_t r = 0; r < rows; ++r) {
    const RowStatistics s
      = loss_join(all_PR + r, head.peers.size(), rows, inverse);
    found.logprobs_R[first + r] = s.logprob;
    found.entropy_R[first + r] = s.entropy;
    found.lse_R[first + r] = s.lse;
  }
}

// Logits of this peer's run of the vocabulary, capped.
void loss_logits(const VocabularyHead& head, std::int64_t rows,
                 const float* hidden_RH, float* logits_RV) {
  linear({rows, head.operands}, {hidden_RH, head.hidden()}, head.weight_VH, {},
         {logits_RV, head.vocab()});
  if (head.cap > 0)
    cap_logits(logits_RV, rows * head.vocab(), static_cast<float>(head.cap));
}

float loss_inverse_cap(const VocabularyHead& head) {
  return head.cap > 0 ? static_cast<float>(1.0 / head.cap) : 0.0F;
}

float loss_inverse(const VocabularyHead& head) {
  return static_cast<float>(1.0 / head.temperature);
}

} // namespace

TokenStatistics token_statistics(const VocabularyHead& head,
                                 const float* hidden_TH,
                                 const WantedTokens& wanted,
                                 Workspace& workspace, bool keep_logits) {
  const std::int64_t vocab = head.vocab();
  const std::int64_t width = head.hidden();
  const std::int64_t count = wanted.size();
  const bool keep = keep_logits && count * vocab <= loss_keep_floats;
  TokenStatistics found{workspace.take(count), workspace.take(count),
                        workspace.take(count),
                        keep ? workspace.take(count * vocab) : nullptr};
  const Workspace::Mark mark = workspace.mark();
  const std::int64_t step = std::min(count, loss_chunk_rows(vocab));
  float* gathered = workspace.take(step * width);
  float* chunk = keep ? nullptr : workspace.take(step * vocab);
  const float inverse = loss_inverse(head);
  const auto take_parts = [&](std::int64_t count_of_rows) {
    return reinterpret_cast<RowPart*>(
      workspace.take(count_of_rows * row_part_floats));
  };
  RowPart* parts = take_parts(step);
  RowPart* all_parts
    = head.peers.alone() ? parts : take_parts(step * head.peers.size());
  for (std::int64_t first = 0; first < count; first += step) {
    const std::int64_t rows = std::min(step, count - first);
    float* logits = keep ? found.logits_RV + first * vocab : chunk;
    loss_gather(wanted, first, rows, width, hidden_TH, gathered);
    loss_logits(head, rows, gathered, logits);
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      on_best_isa([&] {
        for (std::int64_t r = begin; r < end; ++r) {
          parts[r] = loss_row(logits + r * vocab, vocab,
                              loss_target(head, wanted, first + r), inverse);
        }
      });
    };
    at::parallel_for(0, rows, loss_grain_rows(vocab), run);
    loss_statistics(head, parts, all_parts, first, rows, inverse, found);
  }
  workspace.rewind(mark);
  return found;
}

void token_statistics_backward(
  const VocabularyHead& head, const float* hidden_TH,
  const WantedTokens& wanted, const TokenStatistics& found,
  const float* d_logprobs_R, const float* d_entropy_R, float* d_hidden_TH,
  const at::Tensor& d_weight_VH, Workspace& workspace) {
  const std::int64_t vocab = head.vocab();
  const std::int64_t width = head.hidden();
  const std::int64_t count = wanted.size();
  const Workspace::Mark mark = workspace.mark();
  const std::int64_t step = std::min(count, loss_chunk_rows(vocab));
  float* gathered = workspace.take(step * width);
  float* d_rows = workspace.take(step * width);
  float* chunk
    = found.logits_RV != nullptr ? nullptr : workspace.take(step * vocab);
  for (std::int64_t first = 0; first < count; first += step) {
    const std::int64_t rows = std::min(step, count - first);
    loss_gather(wanted, first, rows, width, hidden_TH, gathered);
    float* logits = chunk;
    if (found.logits_RV != nullptr)
      logits = found.logits_RV + first * vocab;
    else
      loss_logits(head, rows, gathered, logits);
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      on_best_isa([&] {
        for (std::int64_t r = begin; r < end; ++r) {
          const std::int64_t i = first + r;
          loss_row_backward(logits + r * vocab, vocab,
                            loss_target(head, wanted, i), loss_inverse(head),
                            {d_logprobs_R != nullptr ? d_logprobs_R[i] : 0.0F,
                             d_entropy_R != nullptr ? d_entropy_R[i] : 0.0F,
                             found.entropy_R[i], found.lse_R[i],
                             loss_inverse_cap(head)});
        }
      });
    };
    at::parallel_for(0, rows, loss_grain_rows(vocab), run);
    const ProductRows products{rows, head.operands};
    linear_grad_weight(products, {logits, vocab}, {gathered, width},
                       d_weight_VH);
    linear_grad_input(products, {logits, vocab}, head.weight_VH,
                      {d_rows, width});
    for (std::int64_t r = 0; r < rows; ++r) {
      float* to
        = d_hidden_TH
          + wanted.positions_R[static_cast<std::size_t>(first + r)] * width;
      for (std::int64_t j = 0; j < width; ++j)
        to[j] += d_rows[r * width + j];
    }
  }
  workspace.rewind(mark);
}

void raw_logits(const VocabularyHead& head, const float* hidden_TH,
                std::int64_t rows, float* logits) {
  loss_logits(head, rows, hidden_TH, logits);
  const float inverse = loss_inverse(head);
  if (inverse == 1.0F)
    return;
  for (std::int64_t i = 0; i < rows * head.vocab(); ++i)
    logits[i] *= inverse;
}

void scalar_head(const at::Tensor& weight_1H, const float* hidden_TH,
                 std::int64_t rows, float* out_T) {
  const std::int64_t width = weight_1H.size(1);
  const float* weight = weight_1H.const_data_ptr<float>();
  on_best_isa([&] {
    for (std::int64_t t = 0; t < rows; ++t) {
      const float* x = hidden_TH + t * width;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = 0; j < width; ++j)
        sum += x[j] * weight[j];
      out_T[t] = sum;
    }
  });
}

void scalar_head_backward(const at::Tensor& weight_1H, const float* hidden_TH,
                          std::int64_t rows, const float* d_out_T,
                          float* d_hidden_TH, const at::Tensor& d_weight_1H) {
  const std::int64_t width = weight_1H.size(1);
  const float* weight = weight_1H.const_data_ptr<float>();
  float* d_weight = d_weight_1H.mutable_data_ptr<float>();
  on_best_isa([&] {
    for (std::int64_t t = 0; t < rows; ++t) {
      const float d = d_out_T[t];
      if (d == 0)
        continue;
      const float* x = hidden_TH + t * width;
      float* dx = d_hidden_TH + t * width;
#pragma omp simd
      for (std::int64_t j = 0; j < width; ++j) {
        dx[j] += d * weight[j];
        d_weight[j] += d * x[j];
      }
    }
  });
}

} // namespace troupe::models
