// From the stream of decoder.hpp to logits and drawn tokens.
#include "models/parallel/run_context.hpp"
#include "models/transformer/decoder.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

constexpr std::int64_t drawn_floats = sizeof(DrawnToken) / sizeof(float);

/// Returns whether rows are 0, 1, 2, ...
bool are_first(std::span<const std::int64_t> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != static_cast<std::int64_t>(i))
      return false;
  return true;
}

} // namespace

const float* Decoder::logits(std::span<const std::int64_t> rows,
                             const RunContext& context) {
  const float* logits = head(rows, TensorPeers(context, backend_));
  const auto count = static_cast<std::int64_t>(rows.size());
  logits_.of_host = std::make_unique<const net::HostRead>(
    backend_.read(logits, count * shape_.vocab_size));
  return logits_.of_host->floats();
}

void Decoder::draw(const PassDraw& what, const TensorPeers& peers) {
  const float* logits = head(what.rows_N, peers);
  const auto count = static_cast<std::int64_t>(what.rows_N.size());
  logits_.num_drawn = count;
  backend_.draw({count, shape_.vocab_size, what.filters}, logits, table_.keys(),
                reinterpret_cast<DrawnToken*>(
                  logits_.drawn_N.reserve(count * drawn_floats)));
}

std::span<const DrawnToken> Decoder::drawn() {
  logits_.of_host = std::make_unique<const net::HostRead>(
    backend_.read(logits_.drawn_N.data(), logits_.num_drawn * drawn_floats));
  return {reinterpret_cast<const DrawnToken*>(logits_.of_host->floats()),
          static_cast<std::size_t>(logits_.num_drawn)};
}

float* Decoder::head(std::span<const std::int64_t> rows,
                     const TensorPeers& peers) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t hidden = shape_.hidden_size;
  const TypedPtr last = logits_.last_NH.reserve(count * hidden);
  ConstTypedPtr from = stream_RH_.data();
  if (!are_first(rows)) {
    backend_.gather_rows({rows, hidden}, from, normed_RH_.data());
    from = normed_RH_.data();
  }
  backend_.norm(norm_shape(count), from, weights_.final_norm.weights(), last,
                nullptr);
  const std::int64_t vocab = shape_.vocab_size;
  float* out = logits_.all_NV.reserve(count * vocab);
  if (peers.alone()) {
    backend_.product(count, last, *head_, {out, vocab}, {});
  } else {
    // All-gather of each rank's part of the vocabulary, padded to the longest,
    // then placed side by side.
    const std::int64_t run = (vocab + peers.size() - 1) / peers.size();
    float* all = logits_.of_peers.reserve(count * run * (peers.size() + 1));
    float* mine = all + count * run * peers.size();
    backend_.product(count, last, *head_, {mine, run}, {});
    peers.collect(mine, all, count * run, "logits");
    for (std::int64_t first = 0; first < vocab; first += run)
      backend_.copy_box({{1, 1, count, std::min(run, vocab - first)},
                         {0, 0, run},
                         {0, 0, vocab}},
                        all + first * count, out + first);
  }
  if (shape_.multipliers.logits != 1)
    backend_.scale(out, count * vocab,
                   static_cast<float>(1.0 / shape_.multipliers.logits));
  if (shape_.caps.logits > 0)
    backend_.cap_logits(out, count * vocab,
                        static_cast<float>(shape_.caps.logits));
  return out;
}

} // namespace troupe::models
