// The conversations of one served generation: each turn that the queue brings
// is a request with the tokens so far, and its answer ends the turn. A server
// keeps keys and values by its own prefix cache.
#pragma once

#include "models/generate/turns.hpp"
#include "models/servers/answer_rules.hpp"
#include "net/child_programs/http_client.hpp"

#include <cstddef>
#include <map>
#include <vector>

namespace troupe::models {

class ServedTurns {
public:
  /// Keeps references to shape, options, version and turns. Samples begin with
  /// the prompts of the batch, whose limit is that of all turns. Throws
  /// FailureError (bad_input) for a prompt that the model cannot take.
  ServedTurns(const ModelShape& shape, const ResponseBatch& prompts,
              const GenerateOptions& options, const std::string& version,
              TurnQueue& turns);

  /// Returns the requests for a server: first the turns that an earlier server
  /// owes, then those that come, until the queue is closed. A turn that has no
  /// room for a token ends at once.
  net::Coming<ServerRequest> requests();
  /// Takes the answer to the i-th of them and ends the turn. Throws as
  /// AnswerRules::add.
  void take(std::size_t i, ServerAnswer answer);

private:
  /// A request to the server of now.
  struct Asked {
    std::size_t sequence = 0;
    bool answered = false;
  };
  net::Coming<ServerRequest>::Intake take_requests();
  void begin(Turn turn);
  ServerRequest request_of(const internal::Sequence& sequence) const;

  const ModelShape& shape_;
  const AnswerRules rules_;
  TurnQueue& turns_;
  std::vector<internal::Sequence> sequences_;
  std::map<SampleId, std::size_t> index_; ///< sample's sequence
  std::vector<std::size_t> waiting_;      ///< sequences, not asked for yet
  std::vector<Asked> asked_;
};

} // namespace troupe::models
