// Responses in several turns: the leader of a sample's conversation requests a
// turn, and the generator continues the sample, whose keys and values it keeps
// for the next one. The queue connects the two: conversations request from any
// thread, and the generator's thread takes what has arrived.
#pragma once

#include "config/base/error.hpp"
#include "config/base/ids.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

namespace troupe::models {

/// Says what the tokens of a turn begin with: the prompt of the sample's row,
/// or anything, as an agent from outside wrote it.
enum class TurnStart : std::uint8_t { row_prompt, anything };

/// Request to continue a sample.
struct Turn {
  SampleId sample;
  std::vector<std::int32_t> ids;   ///< [L] all its tokens, from the prompt on
  std::int64_t max_new_tokens = 0; ///< 0: as many as the sample's limit allows
  TurnStart start = TurnStart::row_prompt;
  /// Names the noise: the number of earlier answers to the same tokens, which
  /// would otherwise all be equal.
  std::uint32_t draw = 0;
  /// Index of the model that speaks (models/generate/generator.hpp, Speaker).
  std::uint32_t speaker = 0;
};

/// The model's response in a turn.
struct TurnEnd {
  std::vector<std::int32_t> ids; ///< new tokens, including the end token
  std::vector<float> logprobs;   ///< one each
  bool truncated = false;        ///< cut by a length limit, no end token
};

class TurnQueue {
public:
  using Done = std::function<void(std::variant<TurnEnd, Failure>)>;
  struct Intake {
    std::vector<Turn> turns; ///< in order of the requests
    bool closed = false;     ///< no more will arrive
  };

  // -- conversations, from any thread --
  /// Requests a turn; `done` is called once, on any thread. At most one turn of
  /// a sample at a time.
  void ask(Turn turn, Done done);
  /// Ends the requests: the generator returns once the running turns have
  /// ended.
  void close();
  /// Fails every turn, requested or later, and the generator.
  void fail(const Failure& failure);

  // -- the generator --
  /// Waits until something has arrived, for at most `most`. Throws FailureError
  /// after fail().
  Intake take(std::chrono::milliseconds most);
  /// Calls `on_arrival`, on any thread, whenever take() has something to return
  /// or throw, until it is replaced; empty: nothing is called. It must not use
  /// the queue.
  void listen(std::function<void()> on_arrival);
  void end(SampleId sample, TurnEnd end);

private:
  Done done_of(SampleId sample);
  /// Tells the generator; the mutex is held.
  void arrived();

  std::mutex mutex_;
  std::condition_variable came_;
  std::function<void()> on_arrival_;
  std::vector<Turn> asked_;
  std::map<SampleId, Done> under_way_; ///< requested or being generated
  bool closed_ = false;
  std::optional<Failure> failure_;
};

} // namespace troupe::models
