#include "models/generate/sequences.hpp"

#include <algorithm>

namespace troupe::models::internal {

[[noreturn]] void generation_failed(Errc code, const std::string& what) {
  throw FailureError(
    {.code = code, .who = "generation", .what = what, .cause = ""});
}

namespace {

void check_ids(std::span<const std::int32_t> ids, std::int64_t vocab_size,
               const std::string& who) {
  for (const std::int32_t id : ids)
    if (id < 0 || id >= vocab_size)
      generation_failed(Errc::bad_input, who + "token id " + std::to_string(id)
                                           + " is not in the vocabulary of "
                                           + std::to_string(vocab_size));
}

Sequence make_sequence(const ResponseBatch& batch, std::size_t row,
                       std::span<const std::int32_t> prompt,
                       const ModelShape& shape,
                       const GenerateOptions& options) {
  Sequence s;
  s.sample = batch.rows->samples[row];
  s.noise.step = batch.step;
  const std::string who = "sample " + to_string(s.sample) + ": ";
  if (prompt.empty())
    generation_failed(Errc::bad_input, who + "its prompt is empty");
  if (static_cast<std::int64_t>(prompt.size()) > shape.context_tokens())
    generation_failed(Errc::bad_input,
                      who + "its prompt of " + std::to_string(prompt.size())
                        + " tokens is longer than the model's "
                        + std::to_string(shape.context_tokens())
                        + " positions");
  check_ids(prompt, shape.vocab_size, who);
  s.ids.assign(prompt.begin(), prompt.end());
  record_given(s, prompt.size());
  s.num_prompt = s.given = s.size();
  s.limits.turn = s.limits.all
    = std::min(s.num_prompt + std::max<std::int64_t>(batch.max_new_tokens, 0),
               shape.context_tokens());
  s.ids.reserve(static_cast<std::size_t>(s.limits.all));
  if (options.stop_texts)
    s.watch.emplace(*options.stop_texts);
  return s;
}

/// Returns sample i's elements of a column.
template <class T>
std::span<const T> elements_of(const net::Column& column, std::size_t i) {
  return column.as<T>().subspan(column.offsets()[i], column.lengths[i]);
}

template <class T>
std::vector<T> copy_of(const net::Column& column, std::size_t i) {
  const auto elements = elements_of<T>(column, i);
  return {elements.begin(), elements.end()};
}

/// Takes the response that an earlier slice began, as if it had been generated
/// here; nothing of it is in the cache.
void take_response(Sequence& s, const net::Rows& rows, std::size_t row,
                   std::int64_t vocab_size) {
  const std::string who = "sample " + to_string(s.sample) + ": ";
  auto ids = copy_of<std::int32_t>(rows.at("sequence_ids"), row);
  if (ids.size() < s.ids.size()
      || !std::equal(s.ids.begin(), s.ids.end(), ids.begin()))
    generation_failed(Errc::bad_input,
                      who + "its response does not begin with its prompt");
  check_ids(ids, vocab_size, who);
  if (s.watch)
    for (auto id = ids.begin() + s.num_prompt; id != ids.end(); ++id)
      s.watch->push(*id);
  s.ids = std::move(ids);
  s.record.logprobs = copy_of<float>(rows.at("logprobs"), row);
  if (rows.has("kept_counts")) {
    s.record.kept_counts = copy_of<std::int32_t>(rows.at("kept_counts"), row);
    s.record.kept_ids = copy_of<std::int32_t>(rows.at("kept_ids"), row);
  }
  if (rows.has("routed_experts"))
    s.record.experts_LW = copy_of<std::int32_t>(rows.at("routed_experts"), row);
  s.stopped = elements_of<std::uint8_t>(rows.at("truncated"), row).front() == 0;
}

// Adds kept_counts and kept_ids.
void add_kept(std::span<const Sequence> sequences,
              const std::vector<std::uint32_t>& lengths, net::Rows& rows) {
  std::vector<std::int32_t> counts;
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> num_ids;
  for (const Sequence& s : sequences) {
    const TokenRecord& own = s.record;
    counts.insert(counts.end(), own.kept_counts.begin(), own.kept_counts.end());
    ids.insert(ids.end(), own.kept_ids.begin(), own.kept_ids.end());
    num_ids.push_back(static_cast<std::uint32_t>(own.kept_ids.size()));
  }
  rows.add(net::make_column("kept_counts", DType::i32, lengths, counts.data()));
  rows.add(
    net::make_column("kept_ids", DType::i32, std::move(num_ids), ids.data()));
}

// Adds routed_experts.
void add_experts(std::span<const Sequence> sequences, net::Rows& rows) {
  std::vector<std::int32_t> experts;
  std::vector<std::uint32_t> lengths;
  for (const Sequence& s : sequences) {
    const std::vector<std::int32_t>& own = s.record.experts_LW;
    experts.insert(experts.end(), own.begin(), own.end());
    lengths.push_back(static_cast<std::uint32_t>(own.size()));
  }
  rows.add(net::make_column("routed_experts", DType::i32, std::move(lengths),
                            experts.data()));
}

} // namespace

std::vector<Sequence> make_sequences(std::span<const ResponseBatch> batches,
                                     const ModelShape& shape,
                                     const GenerateOptions& options) {
  std::vector<Sequence> sequences;
  for (const ResponseBatch& batch : batches) {
    const net::Rows& prompts = *batch.rows;
    if (prompts.samples.empty())
      continue; // such rows have no columns either
    const net::Column& column = prompts.at("prompt_ids");
    const auto ids = column.as<std::int32_t>();
    const auto offsets = column.offsets();
    for (std::size_t i = 0; i < prompts.num_samples(); ++i) {
      auto s = make_sequence(
        batch, i, ids.subspan(offsets[i], offsets[i + 1] - offsets[i]), shape,
        options);
      const bool alike = !sequences.empty()
                         && sequences.back().num_prompt == s.num_prompt
                         && std::equal(s.ids.begin(), s.ids.end(),
                                       sequences.back().ids.begin());
      s.group = alike ? sequences.back().group : sequences.size();
      if (prompts.has("sequence_ids"))
        take_response(s, prompts, i, shape.vocab_size);
      sequences.push_back(std::move(s));
    }
  }
  return sequences;
}

void begin_turn(Sequence& s, Turn turn, std::int64_t vocab_size) {
  const std::string who = "sample " + to_string(s.sample) + ": ";
  auto& ids = turn.ids;
  const auto prompt_end = s.ids.begin() + s.num_prompt;
  const auto [mine, theirs]
    = std::mismatch(s.ids.begin(), s.ids.end(), ids.begin(), ids.end());
  if (turn.start == TurnStart::row_prompt && mine < prompt_end)
    generation_failed(Errc::bad_input,
                      who + "a turn begins with the sample's prompt");
  if (ids.empty())
    generation_failed(Errc::bad_input, who + "a turn without tokens");
  check_ids(ids, vocab_size, who);
  // the last token's logits are needed, so it is fed again if necessary
  s.fed = std::min({s.fed, static_cast<std::int64_t>(mine - s.ids.begin()),
                    static_cast<std::int64_t>(ids.size()) - 1});
  s.ids = std::move(ids);
  record_given(s, s.ids.size());
  s.given = s.size();
  if (turn.start == TurnStart::anything)
    s.num_prompt = s.given;
  s.noise.draw = turn.draw;
  s.limits.turn = turn.max_new_tokens > 0
                    ? std::min(s.limits.all, s.given + turn.max_new_tokens)
                    : s.limits.all;
  s.stopped = false;
}

TurnEnd turn_end(const Sequence& s) {
  return {.ids = {s.ids.begin() + s.given, s.ids.end()},
          .logprobs
          = {s.record.logprobs.begin() + s.given, s.record.logprobs.end()},
          .truncated = !s.stopped};
}

void record_given(Sequence& s, std::size_t count) {
  s.record = {.logprobs = std::vector<float>(count, 0.0F),
              .kept_counts = std::vector<std::int32_t>(count, 0),
              .kept_ids = {},
              .experts_LW = {}};
}

net::Rows sequence_rows(std::span<const Sequence> sequences,
                        const GenerateOptions& options) {
  std::vector<SampleId> samples;
  std::vector<std::uint32_t> lengths;
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> mask;
  std::vector<float> logprobs;
  std::vector<std::uint8_t> truncated;
  for (const Sequence& s : sequences) {
    samples.push_back(s.sample);
    lengths.push_back(static_cast<std::uint32_t>(s.size()));
    ids.insert(ids.end(), s.ids.begin(), s.ids.end());
    mask.insert(mask.end(), static_cast<std::size_t>(s.num_prompt), 0);
    mask.insert(mask.end(), static_cast<std::size_t>(s.size() - s.num_prompt),
                1);
    logprobs.insert(logprobs.end(), s.record.logprobs.begin(),
                    s.record.logprobs.end());
    truncated.push_back(s.stopped ? 0 : 1);
  }
  const std::vector<std::uint32_t> ones(samples.size(), 1);
  net::Rows rows;
  rows.samples = std::move(samples);
  rows.add(net::make_column("sequence_ids", DType::i32, lengths, ids.data()));
  rows.add(net::make_column("loss_mask", DType::u8, lengths, mask.data()));
  rows.add(net::make_column("logprobs", DType::f32, lengths, logprobs.data()));
  rows.add(net::make_column("truncated", DType::u8, ones, truncated.data()));
  if (options.record.logprobs == ResponseLogprobs::masked)
    add_kept(sequences, lengths, rows);
  if (options.record.experts)
    add_experts(sequences, rows);
  return rows;
}

} // namespace troupe::models::internal
