// Replies that are sent after their handler has returned: a Task is a coroutine
// that may await Futures, `respond` replies with a Future. Both record the
// reply's arrow in the trace.
#pragma once

#include "troupe/detail/caf.hpp"
#include "troupe/detail/traced_user_actor.hpp"
#include "troupe/future.hpp"
#include "troupe/waits.hpp"

#include <chrono>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

namespace detail {

/// The obligation to answer a message after its handler has returned.
template <class T>
class Reply {
public:
  template <class Self>
  explicit Reply(Self self)
    : promise_(self->template make_response_promise<T>()),
      writer_(dynamic_cast<TracedUserActor*>(self)) {
    if (writer_ != nullptr)
      question_ = writer_->take_question();
  }
  const caf::typed_response_promise<T>& promise() const {
    return promise_;
  }
  void deliver(T value) {
    if constexpr (std::is_same_v<T, Sample>)
      if (writer_ != nullptr)
        writer_->reply(question_, value);
    promise_.deliver(std::move(value));
  }
  void fail(const std::string& text) {
    promise_.deliver(caf::make_error(caf::sec::runtime_error, text));
  }

private:
  caf::typed_response_promise<T> promise_;
  TracedUserActor* writer_; ///< null: not traced
  Sample::Arrow question_;
};

template <class T>
caf::result<T> reply_later(Reply<T> reply, Future<T> future) {
  future.on_outcome([reply](Outcome<T>& outcome) mutable {
    if (auto* value = std::get_if<T>(&outcome))
      reply.deliver(std::move(*value));
    else
      reply.fail(text_of(std::get<std::exception_ptr>(outcome)));
  });
  return reply.promise();
}

/// True if the first argument of a coroutine is an actor that can reply.
template <class T, class... Args>
constexpr bool begins_with_self = false;
template <class T, class Self, class... Args>
constexpr bool
  begins_with_self<T, Self, Args...> = requires(std::decay_t<Self> self) {
  self->template make_response_promise<T>();
};

} // namespace detail

/// Returns the reply of a handler that is not a coroutine: return respond(self,
/// future).
template <class T, class Self>
caf::result<T> respond(Self self, Future<T> future) {
  return detail::reply_later(detail::Reply<T>(self), std::move(future));
}

/// A coroutine. Returned from a handler, it answers the message with its value;
/// an exception becomes the error that the requester receives.
template <class T>
class Task {
public:
  struct promise_type {
    Future<T> future;
    std::shared_ptr<detail::FutureState<T>> state = future.state();
    std::function<detail::Reply<T>()> make_reply;

    template <class... Args>
    explicit promise_type(Args&&... args) {
      constexpr bool fits = detail::begins_with_self<T, Args...>;
      static_assert(fits, "a coroutine that gives a troupe::Task is a function "
                          "whose first argument is its actor's self pointer; "
                          "a lambda's or a member's is its object");
      if constexpr (fits)
        make_reply = [self = std::get<0>(std::tie(args...))] {
          return detail::Reply<T>(self);
        };
    }
    Task get_return_object() {
      return Task{std::move(future), std::move(make_reply)};
    }
    std::suspend_never initial_suspend() noexcept {
      return {};
    }
    std::suspend_never final_suspend() noexcept {
      return {};
    }
    void return_value(T value) {
      state->complete(detail::Outcome<T>(std::move(value)));
    }
    void unhandled_exception() {
      state->complete(detail::Outcome<T>(std::current_exception()));
    }
  };

  /// Converts to the reply of a handler.
  operator caf::result<T>() && {
    return detail::reply_later(make_reply_(), std::move(future_));
  }
  /// Lets another Task await this one.
  Future<T> operator co_await() && {
    return std::move(future_);
  }
  operator Future<T>() && {
    return std::move(future_);
  }

private:
  Task(Future<T> future, std::function<detail::Reply<T>()> make_reply)
    : future_(std::move(future)),
      make_reply_(std::move(make_reply)) {}

  Future<T> future_;
  std::function<detail::Reply<T>()> make_reply_;
};

namespace detail {

template <class T>
struct Awaits<Task<T>> {
  using Future = troupe::Future<T>;
};

} // namespace detail

template <class T>
Future<std::vector<T>> all(std::vector<Task<T>> tasks) {
  std::vector<Future<T>> futures;
  for (auto& task : tasks)
    futures.push_back(std::move(task));
  return all(std::move(futures));
}

template <class T, class Self>
Future<T> within(Self self, std::chrono::milliseconds deadline, Task<T> task) {
  return within(self, deadline, Future<T>(std::move(task)));
}

} // namespace troupe
