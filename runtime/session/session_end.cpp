#include "runtime/session/session_end.hpp"

#include <utility>

namespace troupe::runtime {

SessionEnd::SessionEnd(StepId first_step,
                       std::shared_ptr<actors::AskTable> asks)
  : next_step_(first_step),
    asks_(std::move(asks)) {}

void SessionEnd::stop_now() {
  end_ = actors::RunEnd{.kind = actors::RunEnd::Kind::stopped,
                        .next_step = next_step_};
}

void SessionEnd::fail(const Failure& failure) {
  if (end_)
    return;
  end_ = actors::RunEnd{.kind = actors::RunEnd::Kind::failed,
                        .next_step = next_step_,
                        .failure = failure};
}

void SessionEnd::hear(const actors::RunEnd& event, Time now) {
  if (end_ || cause_.holds_end())
    return;
  const bool by_peer = event.kind == actors::RunEnd::Kind::failed
                       && event.failure.code == Errc::peer_lost;
  const auto& death = cause_.first_death();
  if (by_peer && !death)
    return cause_.hold(event, now);
  end_ = event;
  if (by_peer) {
    end_->failure = death->failure;
    end_->failure.what += asks_->work_of(death->worker);
  }
}

void SessionEnd::connection_broke(const LostWorker& lost, Time now) {
  cause_.connection_broke(lost, now);
}

void SessionEnd::add_death(const LostWorker& lost) {
  cause_.add_death(lost);
}

bool SessionEnd::waits_for_death() const {
  return cause_.holds_end();
}

std::vector<LostWorker> SessionEnd::look(Time now) {
  if (!end_)
    end_ = cause_.unexplained_end(now);
  return cause_.unexplained(now);
}

} // namespace troupe::runtime
