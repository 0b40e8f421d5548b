// Answers in several turns: whoever leads a sample's conversation asks for a
// turn, and the generator continues the sample, whose keys and values it keeps
// for the next one. The queue is the door between the two: conversations ask
// from any thread, the thread of the generator takes what has come.
#pragma once

#include "config/error.hpp"
#include "config/ids.hpp"

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

/// Continue a sample.
struct Turn {
  SampleId sample;
  std::vector<std::int32_t> ids;   ///< [L] all its tokens, the prompt first
  std::int64_t max_new_tokens = 0; ///< 0: as many as the sample may have
};

/// What the model said.
struct TurnEnd {
  std::vector<std::int32_t> ids; ///< the new tokens, the end token with them
  std::vector<float> logprobs;   ///< one each
  bool truncated = false;        ///< cut by a length limit, no end token
};

class TurnQueue {
public:
  using Done = std::function<void(std::variant<TurnEnd, Failure>)>;
  struct Intake {
    std::vector<Turn> turns; ///< in the order in which they were asked for
    bool closed = false;     ///< no more will come
  };

  // -- conversations, from any thread --
  /// `done` is called once, on any thread. One turn of a sample at a time.
  void ask(Turn turn, Done done);
  /// No more turns: the generator ends when those under way have ended.
  void close();
  /// Every turn fails, those asked for and later ones; the generator too.
  void fail(const Failure& failure);

  // -- the generator --
  /// Waits until something has come, but no longer than `most`. Throws
  /// FailureError after fail().
  Intake take(std::chrono::milliseconds most);
  void end(SampleId sample, TurnEnd end);

private:
  Done done_of(SampleId sample);

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Turn> asked_;
  std::map<SampleId, Done> under_way_; ///< asked for or being generated
  bool closed_ = false;
  std::optional<Failure> failure_;
};

} // namespace troupe::models
