#include "actors/agents/agent_host.hpp"

#include "actors/worker_base/worker_context.hpp"
#include "models/agents/api_error.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <utility>

namespace troupe::actors {

namespace {

constexpr unsigned unauthorized = 401;
constexpr unsigned too_large = 413;

/// Returns 128 bits of the kernel's randomness as hexadecimal text.
std::string new_key() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0)
      != static_cast<ssize_t>(bytes.size()))
    throw FailureError({.code = Errc::io,
                        .who = "key of a session",
                        .what = "the kernel gives no random bytes",
                        .cause = ""});
  std::string key = "troupe-";
  for (const auto byte : bytes)
    key += fmt::format("{:02x}", byte);
  return key;
}

/// Ends a session of a program from outside.
net::ApiResponse end_session(const AdmittedSession& session,
                             const std::string& body) {
  try {
    session.end(models::parse_session_report(body));
    return {.body = "{}"};
  } catch (const models::ApiError& error) {
    return error_response(error);
  }
}

} // namespace

void AgentCounts::add(const AgentCounts& more) {
  sessions += more.sessions;
  failed += more.failed;
  retries += more.retries;
  answers += more.answers;
  unused_answers += more.unused_answers;
  taken += more.taken;
  waited_s += more.waited_s;
}

AgentCounts counts_of(const AgentSession& session, std::uint32_t retries,
                      bool failed) {
  const auto record = session.record();
  return {.sessions = 1,
          .failed = failed ? 1U : 0U,
          .retries = retries,
          .answers = record.num_answers(),
          .unused_answers = record.answers_beside_last_branch()};
}

void AgentHost::start() {
  const std::lock_guard lock(mutex_);
  if (!server_)
    server_ = std::make_unique<net::ApiServer>(
      who_ + ", endpoint of agents", /*port=*/0,
      [this](const net::ApiCall& call, const net::ApiServer::Answer& answer) {
        handle(call, answer);
      },
      net::ApiAccess{.knows = [this](const std::string& key) {
        return find(key).has_value();
      }});
}

std::string AgentHost::url() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("http://127.0.0.1:{}/v1", server_->port());
}

void AgentHost::post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  server_->post(std::move(job));
}

std::string AgentHost::master_url() const {
  return master_ ? master_->url() : "";
}

std::string AgentHost::admit(AdmittedSession session) {
  auto key = new_key();
  const bool waits = static_cast<bool>(session.take);
  {
    const std::lock_guard lock(mutex_);
    sessions_.emplace(key, std::move(session));
  }
  if (master_)
    master_->open(key, waits);
  return key;
}

void AgentHost::dismiss(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    sessions_.erase(key);
  }
  if (master_)
    master_->close(key);
}

std::optional<AdmittedSession> AgentHost::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(key);
  return found == sessions_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<models::TakenSession> AgentHost::take(const std::string& key) {
  const auto session = find(key);
  if (!session || !session->take)
    return std::nullopt;
  return session->take();
}

void AgentHost::count(const AgentCounts& more) {
  const std::lock_guard lock(mutex_);
  counts_.add(more);
}

AgentCounts AgentHost::take_counts() {
  const std::lock_guard lock(mutex_);
  return std::exchange(counts_, {});
}

void AgentHost::handle(const net::ApiCall& call,
                       const net::ApiServer::Answer& answer) {
  const auto session = find(call.key);
  if (!session)
    return answer(error_response(
      {"no session has this key; it is in OPENAI_API_KEY, and ends with its "
       "program",
       "", unauthorized}));
  if (call.is_too_long)
    return answer(
      error_response({"the body is longer than 64 MiB", "", too_large}));
  if (call.is_post && call.path == "/v1/sessions/end" && session->end)
    return answer(end_session(*session, call.body));
  session->session->handle(call, answer);
}

std::shared_ptr<AgentHost> make_agent_host(const WorkerContext& worker) {
  return agents_of(worker.run.settings).command.empty()
           ? nullptr
           : std::make_shared<AgentHost>(worker.who);
}

} // namespace troupe::actors
