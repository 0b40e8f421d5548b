// Values that come later, inside one actor: a Future is completed in a handler
// of its actor and continues there, so nothing needs a lock. A Task is a
// coroutine that may wait for Futures; it answers the message that started it.
#pragma once

#include "troupe/caf.hpp"
#include "troupe/correspondent.hpp"

#include <chrono>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// What `co_await` throws when the awaited value does not come.
class WaitError : public std::runtime_error {
public:
  explicit WaitError(const std::string& what) : std::runtime_error(what) {}
};

namespace detail {

template <class T>
using Outcome = std::variant<T, std::exception_ptr>;

template <class T>
struct FutureState {
  std::optional<Outcome<T>> outcome;
  std::function<void(Outcome<T>&)> waiting;

  void complete(Outcome<T> value) {
    if (outcome)
      return; // a deadline was first
    outcome = std::move(value);
    if (auto next = std::exchange(waiting, nullptr))
      next(*outcome);
  }
};

/// A suspended coroutine; destroyed if nobody ever resumes it.
class Suspended {
public:
  explicit Suspended(std::coroutine_handle<> handle) : handle_(handle) {}
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;
  ~Suspended() {
    if (handle_)
      handle_.destroy();
  }
  void resume() {
    std::exchange(handle_, {}).resume();
  }

private:
  std::coroutine_handle<> handle_;
};

inline std::string text_of(const std::exception_ptr& thrown) {
  std::string text = "an exception of unknown type";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
  }
  return text;
}

/// The duty to answer a message, some time after its handler.
template <class T>
class Reply {
public:
  template <class Self>
  explicit Reply(Self self)
    : promise_(self->template make_response_promise<T>()),
      writer_(dynamic_cast<Correspondent*>(self)) {
    if (writer_ != nullptr)
      question_ = writer_->take_question();
  }
  const caf::typed_response_promise<T>& promise() const {
    return promise_;
  }
  void deliver(T value) {
    if constexpr (std::is_same_v<T, Sample>)
      if (writer_ != nullptr)
        writer_->answer(question_, value);
    promise_.deliver(std::move(value));
  }
  void fail(const std::string& text) {
    promise_.deliver(caf::make_error(caf::sec::runtime_error, text));
  }

private:
  caf::typed_response_promise<T> promise_;
  Correspondent* writer_; ///< null: it is not in the trace
  Sample::Arrow question_;
};

inline std::string text_of(const caf::error& error) {
  const auto& context = error.context();
  if (context.match_elements<std::string>())
    return context.get_as<std::string>(0);
  if (context.match_elements<std::string, std::string, std::string>())
    return context.get_as<std::string>(0) + ": "
           + context.get_as<std::string>(1);
  return error == caf::sec::request_timeout
           ? "no answer within the deadline"
           : "the asked actor failed (" + caf::to_string(error.category()) + " "
               + std::to_string(error.code()) + ")";
}

} // namespace detail

/// Has one reader: `co_await`, `then` and the functions below move it.
template <class T>
class Future {
public:
  using State = detail::FutureState<T>;

  Future() : state_(std::make_shared<State>()) {}
  const std::shared_ptr<State>& state() const {
    return state_;
  }

  /// Calls f(value) once it is there; the Future of what f gives.
  template <class F>
  auto then(F f) && {
    using U = std::invoke_result_t<F, T>;
    Future<U> next;
    on_outcome([f = std::move(f),
                to = next.state()](detail::Outcome<T>& outcome) mutable {
      if (auto* error = std::get_if<std::exception_ptr>(&outcome))
        return to->complete(*error);
      try {
        to->complete(f(std::move(std::get<T>(outcome))));
      } catch (...) {
        to->complete(std::current_exception());
      }
    });
    return next;
  }

  void on_outcome(std::function<void(detail::Outcome<T>&)> f) {
    auto state = std::move(state_);
    if (state->outcome)
      f(*state->outcome);
    else
      state->waiting = std::move(f);
  }

  // -- co_await --
  bool await_ready() const {
    return state_->outcome.has_value();
  }
  void await_suspend(std::coroutine_handle<> handle) {
    auto coroutine = std::make_shared<detail::Suspended>(handle);
    on_outcome([this, coroutine](detail::Outcome<T>& outcome) {
      came_ = std::move(outcome);
      coroutine->resume();
    });
  }
  T await_resume() {
    auto& outcome = came_ ? *came_ : *state_->outcome;
    if (auto* error = std::get_if<std::exception_ptr>(&outcome))
      std::rethrow_exception(*error);
    return std::move(std::get<T>(outcome));
  }

private:
  std::shared_ptr<State> state_;
  std::optional<detail::Outcome<T>> came_; ///< while this is awaited
};

namespace detail {

template <class T>
caf::result<T> answer_later(Reply<T> reply, Future<T> future) {
  future.on_outcome([reply](Outcome<T>& outcome) mutable {
    if (auto* value = std::get_if<T>(&outcome))
      reply.deliver(std::move(*value));
    else
      reply.fail(text_of(std::get<std::exception_ptr>(outcome)));
  });
  return reply.promise();
}

} // namespace detail

/// The answer of a handler that is no coroutine: return respond(self, future).
template <class T, class Self>
caf::result<T> respond(Self self, Future<T> future) {
  return detail::answer_later(detail::Reply<T>(self), std::move(future));
}

/// A coroutine. Returned from a handler, it answers the message with its value;
/// what it throws becomes the error that the asker gets.
template <class T>
class Task {
public:
  struct promise_type {
    Future<T> future;
    std::shared_ptr<detail::FutureState<T>> state = future.state();
    std::function<detail::Reply<T>()> make_reply;

    template <class Self, class... Args>
    explicit promise_type(Self self, Args&&...)
      : make_reply([self] { return detail::Reply<T>(self); }) {}
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

  /// The answer of a handler.
  operator caf::result<T>() && {
    return detail::answer_later(make_reply_(), std::move(future_));
  }
  /// For a Task that another one awaits.
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

/// Asks another actor: ask<Answer>(self, 5s, handle, message...). Without an
/// answer in time the Future fails; 0s: no deadline.
template <class T, class Self, class Handle, class... Args>
Future<T> ask(Self self, std::chrono::milliseconds deadline,
              const Handle& target, Args&&... message) {
  Future<T> future;
  auto state = future.state();
  // CAF keeps an actor alive until the deadlines of its requests have passed
  const auto wait = deadline.count() == 0 ? caf::duration{caf::infinite}
                                          : caf::duration{deadline};
  self->request(target, wait, std::forward<Args>(message)...)
    .then([state](T& value) { state->complete(std::move(value)); },
          [state](caf::error& error) {
            state->complete(
              std::make_exception_ptr(WaitError(detail::text_of(error))));
          });
  return future;
}

/// All values, in order; the first failure fails it.
template <class T>
Future<std::vector<T>> all(std::vector<Future<T>> futures) {
  struct Gathered {
    std::vector<std::optional<T>> values;
    std::size_t missing;
  };
  Future<std::vector<T>> joined;
  auto gathered = std::make_shared<Gathered>(
    Gathered{std::vector<std::optional<T>>(futures.size()), futures.size()});
  if (futures.empty())
    joined.state()->complete(std::vector<T>{});
  for (std::size_t i = 0; i < futures.size(); ++i)
    futures[i].on_outcome(
      [=, to = joined.state()](detail::Outcome<T>& outcome) {
        if (auto* error = std::get_if<std::exception_ptr>(&outcome))
          return to->complete(*error);
        gathered->values[i] = std::move(std::get<T>(outcome));
        if (--gathered->missing > 0)
          return;
        std::vector<T> values;
        for (auto& value : gathered->values)
          values.push_back(std::move(*value));
        to->complete(std::move(values));
      });
  return joined;
}

/// The Future of f(), asked for again where it fails: at most `times` times.
template <class F>
auto retry(int times, F f) -> std::invoke_result_t<F> {
  using Awaited = std::invoke_result_t<F>;
  Awaited result;
  f().on_outcome([=, to = result.state()](auto& outcome) {
    if (outcome.index() == 0 || times <= 1)
      return to->complete(std::move(outcome));
    retry(times - 1, f).on_outcome([to](auto& again) {
      to->complete(std::move(again));
    });
  });
  return result;
}

/// Fails the Future when its value is not there after `deadline`.
template <class T, class Self>
Future<T> within(Self self, std::chrono::milliseconds deadline,
                 Future<T> future) {
  Future<T> result;
  // nobody answers this request, so its deadline is a clock
  auto silent = self->home_system().spawn(
    [](caf::event_based_actor*) { return caf::behavior{[](caf::unit_t) {}}; });
  self->request(silent, caf::duration{deadline}, caf::tick_atom::value)
    .then([](caf::unit_t) {},
          [silent, to = result.state()](caf::error&) {
            to->complete(std::make_exception_ptr(
              WaitError("no value within the deadline")));
          });
  future.on_outcome([to = result.state()](detail::Outcome<T>& outcome) {
    to->complete(std::move(outcome));
  });
  return result;
}

} // namespace troupe
