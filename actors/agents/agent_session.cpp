#include "actors/agents/agent_session.hpp"

#include "models/agents/api_error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>

namespace troupe::actors {

namespace {

constexpr unsigned not_found = 404;
constexpr unsigned our_mistake = 500;
constexpr unsigned unavailable = 503;

constexpr const char* event_stream = "text/event-stream";

} // namespace

net::ApiResponse error_response(const models::ApiError& error) {
  return {.status = error.status, .body = models::error_body(error)};
}

void AgentSession::begin_attempt() {
  const std::lock_guard lock(mutex_);
  ++attempt_;
  num_replies_ = 0;
  requests_.clear();
  current_.reset();
  reward_.reset();
  record_ = {};
}

void AgentSession::handle(const net::ApiCall& call, const Answer& answer) {
  using models::ApiError;
  const std::lock_guard lock(mutex_);
  try {
    if (call.path == "/v1/models")
      return answer({.body = models::models_body(model_->names)});
    if (call.path == "/v1/reward" && call.is_post) {
      reward_ = models::parse_reward(call.body);
      return answer({.body = "{}"});
    }
    const bool chat = call.path == "/v1/chat/completions";
    if (!call.is_post || (!chat && call.path != "/v1/completions"))
      throw ApiError("there is POST /v1/chat/completions, POST "
                     "/v1/completions, POST /v1/reward and GET /v1/models",
                     "", not_found);
    requests_.push_back(
      {chat ? models::ApiKind::chat : models::ApiKind::completion, call.body,
       answer});
  } catch (const ApiError& error) {
    return answer(error_response(error));
  }
  next();
}

bool AgentSession::waits_for_model() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

std::optional<double> AgentSession::posted_reward() const {
  const std::lock_guard lock(mutex_);
  return reward_;
}

models::SessionRecord AgentSession::record() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

/// Begins the requests that wait, until the model has one to answer.
void AgentSession::next() {
  while (!asked_ && !requests_.empty()) {
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    try {
      begin(request);
    } catch (const models::ApiError& error) {
      request.answer(error_response(error));
    } catch (const std::exception& error) { // as a model without texts
      request.answer(error_response({error.what(), "", our_mistake}));
    }
  }
}

/// Returns whom a request asks. Where one model answers, it does so under any
/// name, and a request without a name asks the first.
std::uint32_t AgentSession::speaker_of(const std::string& model) const {
  const auto& names = model_->names;
  if (names.size() == 1 || model.empty())
    return 0;
  const auto found = std::ranges::find(names, model);
  if (found == names.end())
    throw models::no_such_model(model, names);
  return static_cast<std::uint32_t>(found - names.begin());
}

void AgentSession::begin(const Request& request) {
  Current current;
  current.request
    = models::parse_api_request(request.kind, request.body, model_->stops);
  current.answer = request.answer;
  current.speaker = speaker_of(current.request.model);
  auto prompt
    = models::agent_prompt(current.request, record_, model_->tokenizer,
                           model_->chat ? &*model_->chat : nullptr);
  auto& reply = current.reply;
  reply.id = fmt::format(
    "{}-{}-{}", request.kind == models::ApiKind::chat ? "chatcmpl" : "cmpl",
    sample_.value, num_replies_++);
  reply.model = model_->names[current.speaker];
  reply.created_s = static_cast<std::int64_t>(std::time(nullptr));
  if (prompt.after)
    reply.prompt_ids = record_.ids_until(*prompt.after);
  reply.prompt_ids.insert(reply.prompt_ids.end(), prompt.given.begin(),
                          prompt.given.end());
  if (std::ssize(reply.prompt_ids) >= model_->most_tokens) {
    record_.had_no_room();
    reply.answers.resize(current.request.form.n, {.truncated = true});
    return send_reply(current);
  }
  current.given = record_.give(prompt.after, std::move(prompt.given));
  current_ = std::move(current);
  ask();
}

void AgentSession::ask() {
  asked_ = true;
  models::Turn turn{.sample = sample_,
                    .ids = current_->reply.prompt_ids,
                    .max_new_tokens = current_->request.max_tokens,
                    .start = models::TurnStart::anything,
                    .draw = record_.answers_to(current_->given),
                    .speaker = current_->speaker};
  turns_->ask(std::move(turn),
              [self = shared_from_this(), attempt = attempt_](
                const std::variant<models::TurnEnd, Failure>& end) {
                self->post_([=] { self->ended(attempt, end); });
              });
}

void AgentSession::ended(std::uint64_t attempt,
                         const std::variant<models::TurnEnd, Failure>& end) {
  const std::lock_guard lock(mutex_);
  asked_ = false;
  if (current_ && attempt == attempt_) {
    if (const auto* turn = std::get_if<models::TurnEnd>(&end)) {
      take_turn(*turn);
    } else {
      current_->answer(
        error_response({std::get<Failure>(end).what, "", unavailable}));
      current_.reset();
    }
  }
  next();
}

void AgentSession::take_turn(const models::TurnEnd& turn) {
  auto& [request, answer, reply, given, speaker] = *current_;
  const models::ApiAnswer said{turn.ids, turn.logprobs, turn.truncated};
  const auto message = models::said_message(
    request, said, model_->tokenizer,
    fmt::format("{}-{}", reply.id, reply.answers.size()));
  auto as
    = models::said_as(request, message, model_->tokenizer.decode(turn.ids));
  as.by = speaker == 0 ? models::SaidBy::own : models::SaidBy::other;
  record_.say(given, turn.ids, turn.logprobs, turn.truncated, std::move(as));
  reply.answers.push_back(said);
  if (reply.answers.size() < request.form.n)
    return ask();
  send_reply(*current_);
  current_.reset();
}

void AgentSession::send_reply(const Current& current) const {
  const auto& tokenizer = model_->tokenizer;
  if (current.request.form.streams)
    current.answer({.type = event_stream,
                    .body = models::reply_events(current.request, current.reply,
                                                 tokenizer)});
  else
    current.answer(
      {.body = models::reply_body(current.request, current.reply, tokenizer)});
}

} // namespace troupe::actors
