#include "context_ranks.hpp"

#include "models/kernels/aligned_floats.hpp"
#include "models/parallel/context_rows.hpp"
#include "plans/workflow/context_cut.hpp"

#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::testing {

namespace {

using namespace models;

/// Numbers in the memory of a backend.
class DeviceNumbers {
public:
  DeviceNumbers(Backend& backend, const std::vector<float>& numbers)
    : backend_(backend),
      memory_(backend.memory()),
      count_(std::ssize(numbers)),
      data_(memory_.reserve(count_)) {
    backend.write(numbers.data(), data_, numbers.size() * sizeof(float));
  }
  /// Numbers that nobody may read before they are written.
  DeviceNumbers(Backend& backend, std::int64_t count)
    : DeviceNumbers(
      backend, std::vector<float>(static_cast<std::size_t>(count),
                                  std::numeric_limits<float>::quiet_NaN())) {}

  float* data() const {
    return data_;
  }
  std::vector<float> read() const {
    std::vector<float> numbers(static_cast<std::size_t>(count_));
    std::copy_n(backend_.read(data_, count_).floats(), count_, numbers.begin());
    return numbers;
  }

private:
  Backend& backend_;
  AlignedFloats memory_;
  std::int64_t count_;
  float* data_;
};

/// Rows of a matrix by their index.
std::vector<float> rows_of(const std::vector<float>& from, std::int64_t width,
                           const std::vector<std::int64_t>& rows) {
  std::vector<float> to;
  for (const std::int64_t row : rows)
    to.insert(to.end(), from.begin() + row * width,
              from.begin() + (row + 1) * width);
  return to;
}

/// The tokens and keys of one rank, among those of all.
struct RankTokens {
  ContextRows rows;
  std::vector<std::int64_t> tokens; ///< [queries]
  std::vector<std::int64_t> keys;   ///< [keys]
};

std::vector<RankTokens> deal_out(const AttentionShape& shape,
                                 std::uint32_t ranks, std::uint64_t tile_rows) {
  std::vector<std::uint64_t> lengths;
  for (std::size_t s = 0; s + 1 < shape.cu_seqlens.size(); ++s)
    lengths.push_back(static_cast<std::uint64_t>(shape.cu_seqlens[s + 1]
                                                 - shape.cu_seqlens[s]));
  const auto cut = plans::cut_context(lengths, ranks, tile_rows);
  std::vector<RankTokens> all(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    all[r].rows = context_rows(cut, r);
    for (const plans::TokenRun& run : cut[r])
      for (std::uint64_t i = 0; i < run.count; ++i)
        all[r].tokens.push_back(shape.cu_seqlens[run.sequence]
                                + static_cast<std::int64_t>(run.first + i));
  }
  for (RankTokens& rank : all)
    for (const std::int64_t source : rank.rows.sources_K)
      rank.keys.push_back(
        all[static_cast<std::size_t>(source / rank.rows.block)]
          .tokens[static_cast<std::size_t>(source % rank.rows.block)]);
  return all;
}

/// One rank's forward and backward, added to the numbers of all.
void add_rank(Backend& b, const AttentionInputs& in, const RankTokens& rank,
              AttentionNumbers& all) {
  const AttentionShape& whole = in.shape;
  const std::int64_t x = whole.columns();
  const std::int64_t out = whole.heads * whole.head_dim;
  const std::int64_t y = x - out;
  const std::int64_t tokens = whole.cu_seqlens.back();
  PieceShape shape{whole, rank.rows.pieces, rank.rows.queries(),
                   rank.rows.keys()};
  shape.heads.cu_seqlens = {};
  std::vector<float> own = rows_of(in.qkv_TX, x, rank.tokens);
  std::vector<float> keys;
  for (const std::int64_t token : rank.keys)
    keys.insert(keys.end(), in.qkv_TX.begin() + token * x + out,
                in.qkv_TX.begin() + (token + 1) * x);
  for (std::int64_t i = 0; i < std::ssize(own); ++i)
    if (i % x >= out) // own keys, which nothing reads
      own[static_cast<std::size_t>(i)]
        = std::numeric_limits<float>::quiet_NaN();
  const DeviceNumbers qkv(b, own);
  const DeviceNumbers gathered(b, keys);
  const DeviceNumbers d_context(b, rows_of(in.d_context_TX, out, rank.tokens));
  const DeviceNumbers context(b, shape.queries * out);
  const DeviceNumbers lse(b, shape.queries * whole.heads);
  const DeviceNumbers d_qkv(b, shape.queries * x);
  const DeviceNumbers d_keys(b, shape.keys * y);
  {
    const std::vector<AttentionPiece> kept(rank.rows.pieces);
    shape.pieces = kept; // a table of the host, gone before kernels run
    b.piece_attention(shape, {qkv.data(), gathered.data()}, context.data(),
                      lse.data());
    b.piece_attention_backward(shape, {qkv.data(), gathered.data()},
                               {context.data(), lse.data()}, d_context.data(),
                               {d_qkv.data(), d_keys.data()});
  }
  const auto context_R = context.read();
  const auto lse_R = lse.read();
  const auto d_qkv_R = d_qkv.read();
  const auto d_keys_R = d_keys.read();
  for (std::int64_t i = 0; i < shape.queries; ++i) {
    const std::int64_t token = rank.tokens[static_cast<std::size_t>(i)];
    std::copy_n(context_R.begin() + i * out, out,
                all.context_TX.begin() + token * out);
    std::copy_n(d_qkv_R.begin() + i * x, out, all.d_qkv_TX.begin() + token * x);
    for (std::int64_t a = 0; a < whole.heads; ++a)
      all.lse_AT[static_cast<std::size_t>(a * tokens + token)]
        = lse_R[static_cast<std::size_t>(a * shape.queries + i)];
  }
  for (std::int64_t i = 0; i < shape.keys; ++i)
    for (std::int64_t j = 0; j < y; ++j)
      all.d_qkv_TX[at2(rank.keys[static_cast<std::size_t>(i)], out + j, x)]
        += d_keys_R[at2(i, j, y)];
}

} // namespace

AttentionInputs random_attention(const models::AttentionShape& shape) {
  const std::int64_t tokens = shape.cu_seqlens.back();
  return {shape, random_floats(tokens * shape.columns(), 1),
          random_floats(tokens * shape.heads * shape.head_dim, 2)};
}

AttentionNumbers whole_attention(models::Backend& backend,
                                 const AttentionInputs& in) {
  const DeviceNumbers qkv(backend, in.qkv_TX);
  const DeviceNumbers d_context(backend, in.d_context_TX);
  const DeviceNumbers context(backend, std::ssize(in.d_context_TX));
  const DeviceNumbers lse(backend, in.shape.heads * in.shape.cu_seqlens.back());
  const DeviceNumbers d_qkv(backend, std::ssize(in.qkv_TX));
  backend.attention(in.shape, qkv.data(), context.data(), lse.data());
  backend.attention_backward(in.shape, qkv.data(), context.data(), lse.data(),
                             d_context.data(), d_qkv.data());
  return {context.read(), lse.read(), d_qkv.read()};
}

AttentionNumbers ranks_attention(models::Backend& backend,
                                 const AttentionInputs& in, std::uint32_t ranks,
                                 std::uint64_t tile_rows) {
  AttentionNumbers all{std::vector<float>(in.d_context_TX.size()),
                       std::vector<float>(static_cast<std::size_t>(
                         in.shape.heads * in.shape.cu_seqlens.back())),
                       std::vector<float>(in.qkv_TX.size())};
  for (const RankTokens& rank : deal_out(in.shape, ranks, tile_rows))
    add_rank(backend, in, rank, all);
  return all;
}

double largest_difference(const std::vector<float>& found,
                          const std::vector<float>& wanted, std::int64_t width,
                          std::int64_t first, std::int64_t count) {
  double difference = 0;
  double largest = 0;
  for (std::int64_t row = 0; row < std::ssize(wanted) / width; ++row)
    for (std::int64_t j = first; j < first + count; ++j) {
      const double want = wanted[at2(row, j, width)];
      const double off = std::abs(found[at2(row, j, width)] - want);
      if (!(off <= difference))
        difference = off; // also if it is not a number
      largest = std::max(largest, std::abs(want));
    }
  return difference / largest;
}

} // namespace troupe::testing
