// Queue between generated responses and their scores. Producers offer each
// response as it finishes, so that it is scored while others are still being
// generated; the call that reads them requests the scores of all its responses,
// whether offered or not. Offers affect only time: a response that differs from
// the offered one is scored again, and unclaimed ones are dropped with their
// step.
#pragma once

#include "config/base/ids.hpp"
#include "models/rewards/reward.hpp"
#include "net/base/rows.hpp"
#include "net/base/wake_event.hpp"

#include <compare>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::models {

/// The items of a call's responses, with their scores.
struct ScoredItems {
  std::vector<RewardItem> items;
  RewardReplies replies;
};
/// Returns them, or throws the error that prevented scoring.
using GetScored = std::function<ScoredItems()>;

class RewardQueue {
public:
  /// Responses of a call in a step.
  struct Batch {
    std::string call;
    StepId step;
    net::Rows rows;
    /// Requests their scores; called on the scoring thread. Empty: they are
    /// only offered.
    std::function<void(const GetScored&)> on_scored = {};
  };
  /// Callbacks on the scoring thread: ReadItems returns the items of a batch,
  /// one per sample; MakeRewarder, called once, returns the Rewarder.
  using ReadItems = std::function<std::vector<RewardItem>(const Batch&)>;
  using MakeRewarder = std::function<std::unique_ptr<Rewarder>()>;

  RewardQueue(ReadItems read, MakeRewarder make)
    : read_(std::move(read)),
      make_(std::move(make)) {}

  /// Adds a batch, from any thread. Returns true if `serve` must be called for
  /// it.
  bool put(Batch batch);

  // -- the thread that scores --
  /// Returns call and step of the batch that has waited longest; nullopt: none.
  std::optional<std::pair<std::string, StepId>> next() const;
  /// Scores what is queued, and what arrives until everything is scored.
  /// `progress` is called at each score. Errors go to the requesters, or else
  /// to the next requester.
  void serve(const std::atomic<bool>* stop,
             const std::function<void()>& progress);

private:
  struct Key {
    std::string call;
    StepId step;
    SampleId sample;

    auto operator<=>(const Key&) const = default;
  };
  struct Reply {
    RewardItem item;
    std::optional<RewardScore> score;
  };
  struct Asked {
    std::vector<std::shared_ptr<Reply>> replies;
    std::function<void(const GetScored&)> on_scored;
  };

  std::vector<Batch> come();
  std::vector<RewardItem> take();
  void take_batch(Batch& batch, std::vector<RewardItem>& fresh);
  void drop_before(const std::string& call, StepId step);
  void tell_scored();
  void fail(const std::exception_ptr& failure);

  ReadItems read_;
  MakeRewarder make_;
  net::WakeEvent more_;
  mutable std::mutex mutex_;
  std::vector<Batch> come_; ///< guarded, like the next
  bool awaited_ = false;    ///< a `serve` is scheduled
  // used by the scoring thread
  std::unique_ptr<Rewarder> rewarder_;
  std::map<Key, std::shared_ptr<Reply>> held_;   ///< offered, not requested
  std::vector<std::shared_ptr<Reply>> numbered_; ///< in this round
  std::vector<Asked> asked_;
  std::vector<std::string> unmatched_;
  std::exception_ptr failure_; ///< for the next requester
};

} // namespace troupe::models
