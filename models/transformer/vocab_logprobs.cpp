#include "models/transformer/vocab_logprobs.hpp"

#include "models/kernels/linear.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

constexpr std::int64_t loss_chunk_floats = 1 << 22; // 16 MiB of logits
constexpr std::int64_t loss_keep_floats = std::int64_t{1} << 26; // 256 MiB

std::int64_t loss_chunk_rows(std::int64_t vocab) {
  return std::max<std::int64_t>(12, loss_chunk_floats / vocab / 12 * 12);
}

// Returns the wanted positions of rows [first, first + rows).
RowList loss_rows(const VocabularyHead& head, const WantedTokens& wanted,
                  std::int64_t first, std::int64_t rows) {
  return {
    std::span(wanted.positions_R)
      .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows)),
    head.hidden()};
}

// Computes logits of this rank's part of the vocabulary, capped.
void loss_logits(const VocabularyHead& head, std::int64_t rows,
                 const float* hidden_RH, float* logits_RV) {
  linear(*head.backend, {rows, head.operands}, {hidden_RH, head.hidden()},
         head.weight_VH, {}, {logits_RV, head.vocab()});
  if (head.cap > 0)
    head.backend->cap_logits(logits_RV, rows * head.vocab(),
                             static_cast<float>(head.cap));
}

float loss_inverse_cap(const VocabularyHead& head) {
  return head.cap > 0 ? static_cast<float>(1.0 / head.cap) : 0.0F;
}

float loss_inverse(const VocabularyHead& head) {
  return static_cast<float>(1.0 / head.temperature);
}

// Returns the targets of rows [first, first + rows), counted from this rank's
// first vocabulary row.
std::vector<std::int64_t> loss_targets(const VocabularyHead& head,
                                       const WantedTokens& wanted,
                                       std::int64_t first, std::int64_t rows) {
  std::vector<std::int64_t> targets;
  targets.reserve(static_cast<std::size_t>(rows));
  for (std::int64_t r = first; r < first + rows; ++r)
    targets.push_back(wanted.targets_R[static_cast<std::size_t>(r)]
                      - head.first_token);
  return targets;
}

const float* loss_from(const float* values_R, std::int64_t first) {
  return values_R == nullptr ? nullptr : values_R + first;
}

} // namespace

TokenStatistics token_statistics(const VocabularyHead& head,
                                 const float* hidden_TH,
                                 const WantedTokens& wanted,
                                 Workspace& workspace, bool keep_logits) {
  const std::int64_t vocab = head.vocab();
  const std::int64_t count = wanted.size();
  const bool keep = keep_logits && count * vocab <= loss_keep_floats;
  TokenStatistics found{workspace.take(count), workspace.take(count),
                        workspace.take(count),
                        keep ? workspace.take(count * vocab) : nullptr};
  const Workspace::Mark mark = workspace.mark();
  const std::int64_t step = std::min(count, loss_chunk_rows(vocab));
  float* gathered = workspace.take(step * head.hidden());
  float* chunk = keep ? nullptr : workspace.take(step * vocab);
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
    head.backend->gather_rows(loss_rows(head, wanted, first, rows), hidden_TH,
                              gathered);
    loss_logits(head, rows, gathered, logits);
    const std::vector<std::int64_t> targets
      = loss_targets(head, wanted, first, rows);
    const LogitRows shape{rows, vocab, loss_inverse(head),
                          loss_inverse_cap(head), targets};
    head.backend->logit_parts(shape, logits, parts);
    if (!head.peers.alone())
      head.peers.collect(&parts->top, &all_parts->top, rows * row_part_floats,
                         "vocabulary statistics");
    head.backend->join_parts(
      shape, head.peers.size(), all_parts,
      {found.logprobs_R + first, found.entropy_R + first, found.lse_R + first});
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
    const RowList list = loss_rows(head, wanted, first, rows);
    head.backend->gather_rows(list, hidden_TH, gathered);
    float* logits = chunk;
    if (found.logits_RV != nullptr)
      logits = found.logits_RV + first * vocab;
    else
      loss_logits(head, rows, gathered, logits);
    const std::vector<std::int64_t> targets
      = loss_targets(head, wanted, first, rows);
    head.backend->logit_gradient(
      {rows, vocab, loss_inverse(head), loss_inverse_cap(head), targets},
      {loss_from(d_logprobs_R, first), loss_from(d_entropy_R, first),
       found.entropy_R + first, found.lse_R + first},
      logits);
    const ProductRows products{rows, head.operands};
    linear_grad_weight(*head.backend, products, {logits, vocab},
                       {gathered, width}, d_weight_VH);
    linear_grad_input(*head.backend, products, {logits, vocab}, head.weight_VH,
                      {d_rows, width});
    head.backend->scatter_rows(list, d_rows, d_hidden_TH);
  }
  workspace.rewind(mark);
}

void raw_logits(const VocabularyHead& head, const float* hidden_TH,
                std::int64_t rows, float* logits) {
  loss_logits(head, rows, hidden_TH, logits);
  head.backend->wait();
  const float inverse = loss_inverse(head);
  for (std::int64_t i = 0; i < rows * head.vocab() && inverse != 1.0F; ++i)
    logits[i] *= inverse;
}

} // namespace troupe::models
