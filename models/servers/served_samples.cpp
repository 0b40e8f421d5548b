#include "models/servers/served_samples.hpp"

#include <string>
#include <utility>

namespace troupe::models {

ServedSamples::ServedSamples(const ModelShape& shape,
                             std::span<const ResponseBatch> batches,
                             const GenerateOptions& options,
                             const std::string& version,
                             const GenerateEvents& events)
  : options_(options),
    rules_(shape, options, version),
    events_(events),
    sequences_(internal::make_sequences(batches, shape, options)),
    is_open_(sequences_.size(), true) {
  for (const auto& batch : batches) {
    const auto first = batch_of_.size();
    const auto count = batch.rows->num_samples();
    batch_of_.resize(first + count, batches_.size());
    batches_.push_back({first, first + count, count});
  }
  for (std::size_t i = 0; i < batches_.size(); ++i)
    if (batches_[i].num_open == 0)
      end_batch(i);
  for (std::size_t i = 0; i < sequences_.size(); ++i)
    if (sequences_[i].finished()) // its prompt fills the context
      end_sample(i);
}

std::vector<ServerRequest> ServedSamples::open_requests() const {
  std::vector<ServerRequest> requests;
  for (std::size_t i = 0; i < sequences_.size(); ++i)
    if (is_open_[i])
      requests.push_back(
        {.id = std::to_string(i),
         .prompt_ids = sequences_[i].ids,
         .max_new_tokens = sequences_[i].limits.all - sequences_[i].num_prompt,
         .seed = rules_.seed_of(sequences_[i])});
  return requests;
}

void ServedSamples::take(const ServerRequest& request, ServerAnswer answer) {
  const auto i = std::stoul(request.id);
  rules_.add(sequences_.at(i), std::move(answer));
  end_sample(i);
}

void ServedSamples::end_sample(std::size_t i) {
  const auto& sequence = sequences_[i];
  is_open_[i] = false;
  const auto batch = batch_of_[i];
  if (events_.on_sample)
    events_.on_sample({.sample = sequence.sample,
                       .batch = batch,
                       .sequence_ids = sequence.ids,
                       .logprobs = sequence.record.logprobs,
                       .num_prompt_tokens = sequence.num_prompt,
                       .truncated = !sequence.stopped});
  if (--batches_[batch].num_open == 0)
    end_batch(batch);
}

void ServedSamples::end_batch(std::size_t batch) {
  const auto& [first, last, open] = batches_[batch];
  if (events_.on_batch)
    events_.on_batch(
      batch, internal::sequence_rows(
               std::span(sequences_).subspan(first, last - first), options_));
}

} // namespace troupe::models
