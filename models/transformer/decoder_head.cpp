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

const float* Decoder::logits(std::span<const std::int64_t> rows) {
  const auto count = std::ssize(rows);
  const float* logits = head(picked(rows), count, peers_);
  logits_.of_host = std::make_unique<const net::HostRead>(
    backend_.read(logits, count * shape_.vocab_size));
  peers_.check();
  return logits_.of_host->floats();
}

void Decoder::draw_rows(ConstTypedPtr rows_NH, std::int64_t count,
                        const DrawFilters& filters, const TensorPeers& peers) {
  const float* logits = head(rows_NH, count, peers);
  backend_.draw({count, shape_.vocab_size, filters}, logits, table_.keys(),
                reinterpret_cast<DrawnToken*>(logits_.drawn_N.data()));
}

bool Decoder::runs_ahead() const {
  return draws() && backend_.is_asynchronous() && stays_on_device();
}

DrawnTokens Decoder::drawn() {
  const auto last = std::ranges::max(logits_.wanted);
  return {
    logits_.wanted,
    backend_.read_later(logits_.drawn_N.data(), (last + 1) * drawn_floats),
    peers_};
}

std::span<const DrawnToken> Decoder::draw_before() const {
  return {reinterpret_cast<const DrawnToken*>(logits_.drawn_N.data()),
          static_cast<std::size_t>(logits_.drawn_N.capacity() / drawn_floats)};
}

void Decoder::make_draw_room(std::int64_t num_rows) {
  logits_.drawn_N.reserve(num_rows * drawn_floats);
}

void Decoder::make_logit_room(std::int64_t num_rows) {
  logits_.last_NH.reserve(num_rows * shape_.hidden_size);
  logits_.all_NV.reserve(num_rows * shape_.vocab_size);
}

ConstTypedPtr Decoder::picked(std::span<const std::int64_t> rows_N) {
  if (are_first(rows_N))
    return stream_RH_.data();
  backend_.gather_rows({rows_N, shape_.hidden_size}, stream_RH_.data(),
                       normed_RH_.data());
  return normed_RH_.data();
}

float* Decoder::head(ConstTypedPtr rows_NH, std::int64_t count,
                     const TensorPeers& peers) {
  const TypedPtr last = logits_.last_NH.reserve(count * shape_.hidden_size);
  backend_.norm(norm_shape(count), rows_NH, weights_.final_norm.weights(), last,
                nullptr);
  const std::int64_t vocab = shape_.vocab_size;
  float* out = logits_.all_NV.reserve(count * vocab);
  if (peers.alone()) {
    backend_.product(count, last, *head_, {out, vocab}, {});
  } else {
    // All-gather of each rank's part of the vocabulary, padded to the longest,
    // then placed side by side.
    const std::int64_t run = peers.share_of(vocab);
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
