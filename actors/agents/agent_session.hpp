// The session of one sample that a program from outside leads: takes its
// requests, one after another, asks the generator for turns, and records what
// was said. Parent: the run of the call; the endpoint knows it by its key.
#pragma once

#include "models/agents/agent_prompt.hpp"
#include "models/agents/api_reply.hpp"
#include "models/generate/turns.hpp"
#include "net/http_server/api_server.hpp"

#include <deque>
#include <memory>
#include <mutex>

namespace troupe::actors {

/// The models, as all sessions of a call know them.
struct AgentModel {
  std::vector<std::string> names; ///< by speaker; the first is trained
  models::Tokenizer tokenizer;
  std::optional<models::ChatTemplate> chat; ///< nothing: there is none
  std::vector<std::string> stops;           ///< rollout.stop
  std::int64_t most_tokens = 0;             ///< of a branch
};

class AgentSession : public std::enable_shared_from_this<AgentSession> {
public:
  using Answer = net::ApiServer::Answer;
  /// Runs a job off the generator's thread.
  using Post = std::function<void(std::function<void()>)>;

  AgentSession(SampleId sample, std::shared_ptr<const AgentModel> model,
               std::shared_ptr<models::TurnQueue> turns, Post post)
    : sample_(sample),
      model_(std::move(model)),
      turns_(std::move(turns)),
      post_(std::move(post)) {}

  // -- thread-safe --
  /// Begins again with an empty record; requests of an earlier attempt get no
  /// answer.
  void begin_attempt();
  void handle(const net::ApiCall& call, const Answer& answer);
  /// Returns whether the generator owes it a turn.
  bool waits_for_model() const;
  /// Returns the reward that the program posted.
  std::optional<double> posted_reward() const;
  models::SessionRecord record() const;

private:
  struct Request {
    models::ApiKind kind = models::ApiKind::chat;
    std::string body;
    Answer answer;
  };
  /// The request that the model answers now.
  struct Current {
    models::ApiRequest request;
    Answer answer;
    models::ApiReply reply;
    models::SessionRecord::SegmentId given = 0;
    std::uint32_t speaker = 0;
  };

  void next();
  void begin(const Request& request);
  std::uint32_t speaker_of(const std::string& model) const;
  void ask();
  void ended(std::uint64_t attempt,
             const std::variant<models::TurnEnd, Failure>& end);
  void take_turn(const models::TurnEnd& turn);
  void send_reply(const Current& current) const;

  const SampleId sample_;
  const std::shared_ptr<const AgentModel> model_;
  const std::shared_ptr<models::TurnQueue> turns_;
  const Post post_;
  mutable std::mutex mutex_;
  // guarded by it
  std::uint64_t attempt_ = 0;
  std::uint64_t num_replies_ = 0; ///< of the attempt
  std::deque<Request> requests_;
  std::optional<Current> current_;
  bool asked_ = false; ///< a turn is under way, maybe of an earlier attempt
  std::optional<double> reward_;
  models::SessionRecord record_;
};

/// Returns the response that tells a program what it did wrong.
net::ApiResponse error_response(const models::ApiError& error);

} // namespace troupe::actors
