// Functions that create Futures in a user-defined actor: another actor's reply,
// all of several Futures, a retry, a deadline.
#pragma once

#include "troupe/detail/caf.hpp"
#include "troupe/future.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

namespace detail {

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

template <class T>
constexpr bool holds_floats = std::is_floating_point_v<T>;
template <class T>
requires requires {
  typename T::value_type;
}
constexpr bool holds_floats<T> = holds_floats<typename T::value_type>;
template <class... Ts>
constexpr bool holds_floats<std::tuple<Ts...>> = (holds_floats<Ts> || ...);
template <class A, class B>
constexpr bool
  holds_floats<std::pair<A, B>> = holds_floats<A> || holds_floats<B>;

/// The Future type that corresponds to the result of a function.
template <class T>
struct Awaits {
  using Future = void; ///< not awaitable
};
template <class T>
struct Awaits<troupe::Future<T>> {
  using Future = troupe::Future<T>;
};

} // namespace detail

/// Sends a request to another actor: ask<Reply>(self, 5s, handle, message...).
/// The Future fails if no reply arrives in time; 0s: no deadline.
template <class T, class Self, class Handle, class... Args>
Future<T> ask(Self self, std::chrono::milliseconds deadline,
              const Handle& target, Args&&... message) {
  static_assert(!(detail::holds_floats<T> || ...
                  || detail::holds_floats<std::decay_t<Args>>),
                "messages hold no float or double (CAF changes infinities and "
                "NaN): send a troupe::Sample, or the bits as an integer");
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

/// Returns all values, in order; fails with the first failure.
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

/// Returns the Future of f(), calling f again on failure: at most `times`
/// calls. f returns a Future or a Task.
template <class F>
auto retry(int times, F f) ->
  typename detail::Awaits<std::invoke_result_t<F>>::Future {
  using Awaited = typename detail::Awaits<std::invoke_result_t<F>>::Future;
  constexpr bool fits = !std::is_void_v<Awaited>;
  static_assert(fits, "retry() needs a function that gives a troupe::Future or "
                      "a troupe::Task");
  if constexpr (fits) {
    Awaited result;
    Awaited(f()).on_outcome([=, to = result.state()](auto& outcome) {
      if (outcome.index() == 0 || times <= 1)
        return to->complete(std::move(outcome));
      retry(times - 1, f).on_outcome([to](auto& again) {
        to->complete(std::move(again));
      });
    });
    return result;
  }
}

/// Returns a Future that fails if the value has not arrived after `deadline`.
template <class T, class Self>
Future<T> within(Self self, std::chrono::milliseconds deadline,
                 Future<T> future) {
  Future<T> result;
  // this request is never answered, so its deadline serves as a timer
  auto silent = self->home_system().spawn([](caf::event_based_actor* nobody) {
    nobody->set_default_handler(caf::skip);
    return caf::behavior{[](caf::unit_t) {}};
  });
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
