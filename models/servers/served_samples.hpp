// The samples of one served generation: requests for those that have not ended,
// answers into sequences, and rows of each batch once all of its samples have.
#pragma once

#include "models/generate/generate_events.hpp"
#include "models/generate/sequences.hpp"
#include "models/servers/answer_rules.hpp"

#include <span>
#include <string>
#include <vector>

namespace troupe::models {

class ServedSamples {
public:
  /// Keeps references to all arguments. Batches without samples end at once, as
  /// do samples whose prompt leaves no room for a response. Throws FailureError
  /// (bad_input) for a prompt that the model cannot take.
  ServedSamples(const ModelShape& shape, std::span<const ResponseBatch> batches,
                const GenerateOptions& options, const std::string& version,
                const GenerateEvents& events);

  /// Returns a request per sample that has no answer yet, in order.
  std::vector<ServerRequest> open_requests() const;
  /// Takes an answer to one of them. Throws FailureError: bad_input if it is no
  /// whole response of this model within the limits, stale if other weights
  /// made any of it.
  void take(const ServerRequest& request, ServerAnswer answer);

private:
  struct Batch {
    std::size_t first = 0; ///< of its sequences
    std::size_t last = 0;
    std::size_t num_open = 0;
  };
  void end_sample(std::size_t i);
  void end_batch(std::size_t batch);

  const GenerateOptions& options_;
  const AnswerRules rules_;
  const GenerateEvents& events_;
  std::vector<internal::Sequence> sequences_;
  std::vector<std::size_t> batch_of_; ///< by sequence
  std::vector<bool> is_open_;         ///< by sequence
  std::vector<Batch> batches_;
};

} // namespace troupe::models
