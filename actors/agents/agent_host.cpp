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

} // namespace

void AgentCounts::add(const AgentCounts& more) {
  sessions += more.sessions;
  failed += more.failed;
  retries += more.retries;
  answers += more.answers;
  unused_answers += more.unused_answers;
}

void AgentHost::start() {
  const std::lock_guard lock(mutex_);
  if (!server_)
    server_ = std::make_unique<net::ApiServer>(
      who_ + ", agents.port", port_,
      [this](const net::ApiCall& call, const net::ApiServer::Answer& answer) {
        handle(call, answer);
      });
}

std::string AgentHost::url() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("http://127.0.0.1:{}/v1", server_->port());
}

void AgentHost::post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  server_->post(std::move(job));
}

std::string AgentHost::admit(std::shared_ptr<AgentSession> session) {
  auto key = new_key();
  const std::lock_guard lock(mutex_);
  sessions_.emplace(key, std::move(session));
  return key;
}

void AgentHost::dismiss(const std::string& key) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(key);
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
  std::shared_ptr<AgentSession> session;
  {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(call.key);
    if (found != sessions_.end())
      session = found->second;
  }
  if (!session)
    return answer(error_response(
      {"no session has this key; it is in OPENAI_API_KEY, and ends with its "
       "program",
       "", unauthorized}));
  session->handle(call, answer);
}

std::shared_ptr<AgentHost> make_agent_host(const WorkerContext& worker) {
  const auto& agents = agents_of(worker.run.settings);
  if (agents.command.empty())
    return nullptr;
  const auto port = agents.port ? static_cast<std::uint32_t>(*agents.port)
                                    + worker.worker.value
                                : 0U;
  return std::make_shared<AgentHost>(worker.who,
                                     static_cast<std::uint16_t>(port));
}

} // namespace troupe::actors
