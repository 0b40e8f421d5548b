// Asynchronous values within one actor: a Future is completed in a handler of
// its actor and continues there, so nothing needs a lock. troupe/waits.hpp has
// the functions that create them, troupe/task.hpp the coroutines that await
// them.
#pragma once

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

namespace troupe {

/// Exception that `co_await` throws when the awaited value does not arrive.
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
      return; // a deadline expired before
    outcome = std::move(value);
    if (auto next = std::exchange(waiting, nullptr))
      next(*outcome);
  }
};

/// A suspended coroutine; destroyed if it is never resumed.
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

} // namespace detail

/// A value that arrives later, with a single reader: `co_await`, `then`, `all`
/// and the like move it.
template <class T>
class Future {
public:
  using State = detail::FutureState<T>;

  Future() : state_(std::make_shared<State>()) {}
  const std::shared_ptr<State>& state() const {
    return state_;
  }

  /// Calls f(value) when the value arrives and returns the Future of f's
  /// result.
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
  std::optional<detail::Outcome<T>> came_; ///< set while this is awaited
};

} // namespace troupe
