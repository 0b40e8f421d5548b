#include "models/transformer/vocab_logprobs.hpp"

#include "config/base/error.hpp"
#include "models/kernels/linear.hpp"

#include <algorithm>
#include <utility>

namespace troupe::models {

namespace {

constexpr std::int64_t loss_keep_floats = std::int64_t{1} << 26; // 256 MiB

std::int64_t loss_chunk_rows(const VocabularyHead& head) {
  return std::max<std::int64_t>(12, head.backend->logits_at_once()
                                      / head.vocab() / 12 * 12);
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
                 ConstTypedPtr hidden_RH, float* logits_RV) {
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

// Targets that no rank has.
std::vector<std::int64_t> loss_no_targets(std::int64_t rows) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(rows), -1);
}

const float* loss_from(const float* values_R, std::int64_t first) {
  return values_R == nullptr ? nullptr : values_R + first;
}

// Goes over the wanted rows in chunks whose logits fit in memory. Its buffers
// are memory of the workspace.
class LossChunks {
public:
  LossChunks(const VocabularyHead& head, ConstTypedPtr hidden_TH,
             const WantedTokens& wanted, Workspace& workspace)
    : head_(head),
      hidden_TH_(hidden_TH),
      wanted_(wanted),
      workspace_(workspace),
      step_(std::min(wanted.size(), loss_chunk_rows(head))),
      peers_(head.peers),
      gathered_RH_(workspace.take(step_ * head.hidden(), hidden_TH.type())) {
    peers_.use_streams(hidden_TH.data());
  }

  bool next() {
    first_ += rows_;
    rows_ = std::min(step_, wanted_.size() - first_);
    return rows_ > 0;
  }
  std::int64_t first() const {
    return first_;
  }
  std::int64_t rows() const {
    return rows_;
  }
  ConstTypedPtr gathered_RH() const {
    return gathered_RH_;
  }
  RowList list() const {
    return loss_rows(head_, wanted_, first_, rows_);
  }
  float* take_logits() {
    return workspace_.take(step_ * head_.vocab());
  }
  void take_parts() {
    parts_ = take_parts_of(1);
    all_parts_ = peers_.alone() ? parts_ : take_parts_of(peers_.size());
  }

  void gather() {
    head_.backend->gather_rows(list(), hidden_TH_, gathered_RH_);
  }
  void compute(float* logits_RV) {
    loss_logits(head_, rows_, gathered_RH_, logits_RV);
    if (!wanted_.kept.offsets_R1.empty())
      head_.backend->keep_logits(
        {.rows = rows_,
         .vocab = head_.vocab(),
         .first_token = head_.first_token,
         .offsets_R1 = std::span(wanted_.kept.offsets_R1)
                         .subspan(static_cast<std::size_t>(first_),
                                  static_cast<std::size_t>(rows_) + 1),
         .ids = wanted_.kept.ids},
        logits_RV);
  }

  // Fills this chunk's part of `found` [all rows].
  void statistics(const float* logits_RV, const RowStatistics& found) {
    const std::vector<std::int64_t> targets
      = loss_targets(head_, wanted_, first_, rows_);
    const LogitRows shape{rows_, head_.vocab(), loss_inverse(head_),
                          loss_inverse_cap(head_), targets};
    head_.backend->logit_parts(shape, logits_RV, parts_);
    if (!peers_.alone())
      peers_.collect(&parts_->top, &all_parts_->top, rows_ * row_part_floats,
                     "vocabulary statistics");
    head_.backend->join_parts(shape, peers_.size(), all_parts_,
                              {found.logprobs_R + first_,
                               found.entropy_R + first_, found.lse_R + first_});
  }

  // Fills this chunk's part of what the picked tokens have.
  void pick(const float* logits_RV, const TokenStatistics& found) {
    const Workspace::Mark mark = workspace_.mark();
    const std::int64_t count = rows_ * wanted_.picks;
    const std::vector<std::int64_t> ids = picked_ids();
    const PickedIds picked = picked_of(ids);
    float* own_RK = workspace_.take(count);
    head_.backend->picked_logits(picked, logits_RV, own_RK);
    float* all_PRK = own_RK;
    if (!peers_.alone()) {
      all_PRK = workspace_.take(count * peers_.size());
      peers_.collect(own_RK, all_PRK, count, "picked logits");
    }
    const std::int64_t entry = first_ * wanted_.picks;
    head_.backend->join_picked(
      picked, peers_.size(), all_PRK, found.lse_R + first_,
      {found.picked.logits_RK + entry, found.picked.logprobs_RK + entry});
    workspace_.rewind(mark);
  }

  // Adds what the gradient of the picked tokens gives this chunk's d logits.
  void picked_gradient(const TokenStatistics& found, const float* d_picked_RK,
                       float* d_logits_RV) {
    const std::vector<std::int64_t> ids = picked_ids();
    const std::int64_t entry = first_ * wanted_.picks;
    head_.backend->picked_gradient(picked_of(ids),
                                   found.picked.logits_RK + entry,
                                   d_picked_RK + entry, d_logits_RV);
  }

  const TensorPeers& peers() const {
    return peers_;
  }

private:
  RowPart* take_parts_of(std::uint32_t peers) {
    return reinterpret_cast<RowPart*>(
      workspace_.take(step_ * peers * row_part_floats));
  }
  std::vector<std::int64_t> picked_ids() const {
    std::vector<std::int64_t> ids;
    const std::int64_t end = (first_ + rows_) * wanted_.picks;
    for (std::int64_t entry = first_ * wanted_.picks; entry < end; ++entry)
      ids.push_back(wanted_.picked_RK[static_cast<std::size_t>(entry)]
                    - head_.first_token);
    return ids;
  }
  PickedIds picked_of(const std::vector<std::int64_t>& ids) const {
    return {.rows = rows_,
            .vocab = head_.vocab(),
            .per_row = wanted_.picks,
            .inverse_temperature = loss_inverse(head_),
            .inverse_cap = loss_inverse_cap(head_),
            .ids_RK = ids};
  }

  const VocabularyHead& head_;
  ConstTypedPtr hidden_TH_;
  const WantedTokens& wanted_;
  Workspace& workspace_;
  std::int64_t step_;
  TensorPeers peers_;
  std::int64_t first_ = 0;
  std::int64_t rows_ = 0;
  TypedPtr gathered_RH_;
  RowPart* parts_ = nullptr;
  RowPart* all_parts_ = nullptr;
};

// Candidates for the likeliest tokens: K of each rank's part per row.
struct TopCandidates {
  std::uint32_t peers = 1;
  std::int64_t rows = 0;
  std::int64_t per_row = 0;
  const float* logits_PRK = nullptr;
  const std::int32_t* ids_PRK = nullptr; ///< -1: none
  const float* lse_R = nullptr;
};

// Returns (minus logit, id) of a row's candidates on all ranks, likeliest
// first.
std::vector<std::pair<float, std::int32_t>>
top_of_row(const TopCandidates& from, std::int64_t r) {
  std::vector<std::pair<float, std::int32_t>> row;
  for (std::uint32_t p = 0; p < from.peers; ++p)
    for (std::int64_t k = 0; k < from.per_row; ++k) {
      const std::int64_t at = (p * from.rows + r) * from.per_row + k;
      if (from.ids_PRK[at] >= 0)
        row.emplace_back(-from.logits_PRK[at], from.ids_PRK[at]);
    }
  std::ranges::sort(row);
  return row;
}

// Appends the likeliest of all ranks' candidates.
void top_join(const TopCandidates& from, float inverse_temperature,
              TopTokens& to) {
  for (std::int64_t r = 0; r < from.rows; ++r) {
    const auto row = top_of_row(from, r);
    to.per_row = std::min(to.per_row, static_cast<std::int64_t>(row.size()));
    for (std::size_t k = 0; k < static_cast<std::size_t>(to.per_row); ++k) {
      to.ids_RK.push_back(row[k].second);
      to.logprobs_RK.push_back(-row[k].first * inverse_temperature
                               - from.lse_R[r]);
    }
  }
}

} // namespace

TokenStatistics token_statistics(const VocabularyHead& head,
                                 ConstTypedPtr hidden_TH,
                                 const WantedTokens& wanted,
                                 Workspace& workspace, bool keep_logits) {
  const std::int64_t vocab = head.vocab();
  const std::int64_t count = wanted.size();
  const bool keep = keep_logits && count * vocab <= loss_keep_floats;
  TokenStatistics found{workspace.take(count), workspace.take(count),
                        workspace.take(count),
                        keep ? workspace.take(count * vocab) : nullptr};
  if (wanted.picks > 0)
    found.picked = {workspace.take(count * wanted.picks),
                    workspace.take(count * wanted.picks)};
  const Workspace::Mark mark = workspace.mark();
  LossChunks chunks(head, hidden_TH, wanted, workspace);
  float* chunk = keep ? nullptr : chunks.take_logits();
  chunks.take_parts();
  while (chunks.next()) {
    float* logits = keep ? found.logits_RV + chunks.first() * vocab : chunk;
    chunks.gather();
    chunks.compute(logits);
    chunks.statistics(logits, {found.logprobs_R, found.entropy_R, found.lse_R});
    if (wanted.picks > 0)
      chunks.pick(logits, found);
  }
  workspace.rewind(mark);
  return found;
}

void token_statistics_backward(
  const VocabularyHead& head, ConstTypedPtr hidden_TH,
  const WantedTokens& wanted, const TokenStatistics& found,
  const TokenGradients& gradients, TypedPtr d_hidden_TH,
  const at::Tensor& d_weight_VH, Workspace& workspace) {
  const bool of_picked = gradients.d_picked_RK != nullptr;
  TROUPE_CHECK(!of_picked || gradients.d_logprobs_R == nullptr,
               "a loss reads the targets or the picked tokens");
  const std::int64_t vocab = head.vocab();
  const std::int64_t width = head.hidden();
  const Workspace::Mark mark = workspace.mark();
  LossChunks chunks(head, hidden_TH, wanted, workspace);
  const TypedPtr d_rows = workspace.take(
    std::min(wanted.size(), loss_chunk_rows(head)) * width, d_hidden_TH.type());
  float* chunk = found.logits_RV != nullptr ? nullptr : chunks.take_logits();
  while (chunks.next()) {
    const std::int64_t first = chunks.first();
    chunks.gather();
    float* logits = chunk;
    if (found.logits_RV != nullptr)
      logits = found.logits_RV + first * vocab;
    else
      chunks.compute(logits);
    const std::vector<std::int64_t> targets
      = of_picked ? loss_no_targets(chunks.rows())
                  : loss_targets(head, wanted, first, chunks.rows());
    head.backend->logit_gradient(
      {chunks.rows(), vocab, loss_inverse(head), loss_inverse_cap(head),
       targets},
      {loss_from(of_picked ? gradients.d_picked_sums_R : gradients.d_logprobs_R,
                 first),
       loss_from(gradients.d_entropy_R, first), found.entropy_R + first,
       found.lse_R + first},
      logits);
    if (of_picked)
      chunks.picked_gradient(found, gradients.d_picked_RK, logits);
    const ProductRows products{chunks.rows(), head.operands};
    linear_grad_weight(*head.backend, products, {logits, vocab},
                       {chunks.gathered_RH(), width}, d_weight_VH);
    linear_grad_input(*head.backend, products, {logits, vocab}, head.weight_VH,
                      {d_rows, width});
    head.backend->scatter_rows(chunks.list(), d_rows, d_hidden_TH);
  }
  workspace.rewind(mark);
}

TopTokens top_tokens(const VocabularyHead& head, ConstTypedPtr hidden_TH,
                     const WantedTokens& wanted, std::int64_t per_row,
                     Workspace& workspace) {
  TopTokens found{.per_row = per_row, .ids_RK = {}, .logprobs_RK = {}};
  const Workspace::Mark mark = workspace.mark();
  LossChunks chunks(head, hidden_TH, wanted, workspace);
  const TensorPeers& peers = chunks.peers();
  float* logits = chunks.take_logits();
  chunks.take_parts();
  const std::int64_t count = wanted.size();
  float* statistics_3R = workspace.take(3 * count);
  const RowStatistics rows{statistics_3R, statistics_3R + count,
                           statistics_3R + 2 * count};
  while (chunks.next()) {
    chunks.gather();
    chunks.compute(logits);
    chunks.statistics(logits, rows);
    const Workspace::Mark of_chunk = workspace.mark();
    const std::int64_t entries = chunks.rows() * per_row;
    // Logits, then ids, of this rank and then of all.
    float* own = workspace.take(2 * entries);
    float* all
      = peers.alone() ? own : workspace.take(2 * entries * peers.size());
    head.backend->largest_logits(
      {chunks.rows(), head.vocab(), per_row, head.first_token}, logits, own,
      reinterpret_cast<std::int32_t*>(own + entries));
    if (!peers.alone()) {
      peers.collect(own, all, entries, "largest logits");
      peers.collect(own + entries, all + entries * peers.size(), entries,
                    "ids of the largest logits");
    }
    const auto largest = head.backend->read(all, 2 * entries * peers.size());
    const auto lse_R
      = head.backend->read(rows.lse_R + chunks.first(), chunks.rows());
    peers.check();
    top_join({.peers = peers.size(),
              .rows = chunks.rows(),
              .per_row = per_row,
              .logits_PRK = largest.floats(),
              .ids_PRK = reinterpret_cast<const std::int32_t*>(
                largest.floats() + entries * peers.size()),
              .lse_R = lse_R.floats()},
             loss_inverse(head), found);
    workspace.rewind(of_chunk);
  }
  workspace.rewind(mark);
  return found;
}

void raw_logits(const VocabularyHead& head, ConstTypedPtr hidden_TH,
                std::int64_t rows, float* logits) {
  loss_logits(head, rows, hidden_TH, logits);
  if (const float inverse = loss_inverse(head); inverse != 1.0F)
    head.backend->scale(logits, rows * head.vocab(), inverse);
}

} // namespace troupe::models
