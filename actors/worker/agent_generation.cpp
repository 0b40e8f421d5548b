#include "actors/worker/agent_generation.hpp"

#include "actors/agents/outside_sessions.hpp"
#include "actors/protocol/ask.hpp"
#include "config/base/log.hpp"
#include "models/generate/generate_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace troupe::actors {

namespace {

/// Returns the model's chat template, if it has one that can be read.
std::optional<models::ChatTemplate>
chat_of(const models::Tokenizer& tokenizer) {
  try {
    return models::ChatTemplate(tokenizer);
  } catch (const ConfigError& error) {
    log::actors.info(std::string("agents get no chat: ") + error.what());
    return std::nullopt;
  }
}

std::span<const std::int32_t> prompt_of(const net::Rows& rows, std::size_t i) {
  const auto& column = rows.at("prompt_ids");
  return column.as<std::int32_t>().subspan(column.offsets()[i],
                                           column.lengths[i]);
}

/// Returns rows of one token each: the programs write the prompts, so samples
/// begin with a token that no turn keeps.
net::Rows short_prompts(const net::Rows& rows) {
  std::vector<std::int32_t> first;
  for (std::size_t i = 0; i < rows.num_samples(); ++i)
    first.push_back(prompt_of(rows, i).front());
  net::Rows short_rows;
  short_rows.samples = rows.samples;
  if (!first.empty())
    short_rows.add(net::make_column("prompt_ids", DType::i32,
                                    std::vector<std::uint32_t>(first.size(), 1),
                                    first.data()));
  return short_rows;
}

/// Returns the rows of one sample; `writes_reward` is whether the call writes
/// the program's number.
net::Rows rows_of_branch(SampleId sample, const models::RecordedBranch& branch,
                         std::optional<float> reward) {
  const std::vector lengths{static_cast<std::uint32_t>(branch.ids.size())};
  const std::uint8_t truncated = branch.truncated ? 1 : 0;
  net::Rows rows;
  rows.samples = {sample};
  rows.add(
    net::make_column("sequence_ids", DType::i32, lengths, branch.ids.data()));
  rows.add(
    net::make_column("loss_mask", DType::u8, lengths, branch.loss_mask.data()));
  rows.add(
    net::make_column("logprobs", DType::f32, lengths, branch.logprobs.data()));
  rows.add(net::make_column("truncated", DType::u8, {1}, &truncated));
  if (reward)
    rows.add(net::make_column("agent_rewards", DType::f32, {1}, &*reward));
  return rows;
}

/// The sessions of one run, and the rows that they become.
class LedByAgents {
public:
  LedByAgents(Shard& shard, const LedRun& run, std::int64_t most_tokens)
    : shard_(shard),
      run_(run),
      ended_(run.rows.num_samples()) {
    make_sessions(most_tokens);
  }

  /// Starts the programs, or opens the sessions to others; they end with the
  /// result.
  std::shared_ptr<void> begin();
  models::TurnQueue& turns() const {
    return *turns_;
  }
  /// Returns the rows of all samples, once all sessions have ended.
  net::Rows take() const;

private:
  void make_sessions(std::int64_t most_tokens);
  AgentProgramOptions program_options() const;
  void end(std::size_t i, const models::SessionEnd& end);
  models::RecordedBranch branch_of(std::size_t i) const;
  std::optional<float> reward_of(const models::SessionEnd& end) const;

  Shard& shard_;
  const LedRun& run_;
  std::shared_ptr<models::TurnQueue> turns_
    = std::make_shared<models::TurnQueue>();
  std::vector<AgentTask> tasks_;
  /// Rows of each sample; read once the queue is closed.
  std::vector<net::Rows> ended_;
};

void LedByAgents::make_sessions(std::int64_t most_tokens) {
  WorkerContext& worker = *shard_.worker;
  const auto& tokenizer = worker.data.tokenizer();
  const auto model = std::make_shared<const AgentModel>(
    AgentModel{.names = speaking_roles(run_.call),
               .tokenizer = tokenizer,
               .chat = chat_of(tokenizer),
               .stops = worker.run.settings.rollout.stop,
               .most_tokens = most_tokens});
  const auto& data
    = run_.call.evaluates ? worker.data.evaluation() : worker.data.dataset();
  const auto host = worker.agents;
  for (const SampleId sample : run_.rows.samples)
    tasks_.push_back(
      {.sample = sample,
       .row
       = data.text(worker.data.row_of(run_.call, run_.context.step, sample))
           .json,
       .session = std::make_shared<AgentSession>(
         sample, model, turns_,
         [host](std::function<void()> job) { host->post(std::move(job)); })});
}

AgentProgramOptions LedByAgents::program_options() const {
  const WorkerContext& worker = *shard_.worker;
  const auto& agents = agents_of(worker.run.settings);
  return {.command = agents.command,
          .sandbox = agents.sandbox,
          .concurrency = static_cast<std::uint32_t>(agents.concurrency),
          .retries = static_cast<std::uint32_t>(agents.retries),
          .within = std::chrono::duration<double>(agents.timeout_s),
          .needs_reward = worker.run.settings.reward.kind == "agents",
          .log_folder = worker.run.folder.empty() ? worker.run.folder
                                                  : worker.run.folder / "logs",
          .log_name = fmt::format("agent_d{}", shard_.rank.value),
          .progress = run_.context.progress};
}

std::shared_ptr<void> LedByAgents::begin() {
  auto& host = *shard_.worker->agents;
  host.start();
  const AgentPrograms::Events events{
    .on_end
    = [this](std::size_t i, const models::SessionEnd& ended) { end(i, ended); },
    .on_all_ended =
      [turns = turns_](const std::optional<Failure>& failure) {
        if (failure)
          turns->fail(*failure);
        else
          turns->close();
      }};
  if (agents_of(shard_.worker->run.settings).from_outside())
    return std::make_shared<OutsideSessions>(host, program_options(), tasks_,
                                             events);
  return std::make_shared<AgentPrograms>(host, program_options(), tasks_,
                                         events);
}

/// Returns what is trained on: the last branch, or a prompt without an answer.
models::RecordedBranch LedByAgents::branch_of(std::size_t i) const {
  if (auto branch = tasks_[i].session->record().last_branch())
    return *branch;
  const auto prompt = prompt_of(run_.rows, i);
  return {.ids = {prompt.begin(), prompt.end()},
          .loss_mask = std::vector<std::uint8_t>(prompt.size()),
          .logprobs = std::vector<float>(prompt.size()),
          .truncated = true};
}

/// Returns the program's number, NaN if the session failed; nothing if the call
/// does not write it.
std::optional<float>
LedByAgents::reward_of(const models::SessionEnd& end) const {
  const bool writes
    = std::ranges::any_of(run_.call.writes, [&](const auto& key) {
        return run_.call.argument(key) == "agent_rewards";
      });
  if (!writes)
    return std::nullopt;
  if (!end.failure.empty() || !end.reward)
    return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(*end.reward);
}

void LedByAgents::end(std::size_t i, const models::SessionEnd& end) {
  const auto& settings = shard_.worker->run.settings;
  const auto sample = tasks_[i].sample;
  if (!end.failure.empty()) {
    const auto what = fmt::format("sample {}: {}", sample.value, end.failure);
    if (settings.reward.kind == "agents" && settings.reward.on_error == "fail")
      throw FailureError(
        {.code = Errc::bad_input,
         .who = fmt::format("agents.command in {} of step {}", run_.call.name,
                            step_number(run_.context.step)),
         .what = what,
         .cause = ""});
    log::actors.warn_file("agents.command: " + what);
  }
  ended_[i] = rows_of_branch(sample, branch_of(i), reward_of(end));
  if (run_.on_ended)
    run_.on_ended(ended_[i]);
}

net::Rows LedByAgents::take() const {
  return net::select(net::concat(ended_), run_.rows.samples);
}

} // namespace

bool is_led_by_agents(const plans::Call& call) {
  return call.fn == "generate" && call.by.user_actor;
}

net::Rows converse_with_agents(Shard& shard, const LedRun& run) {
  const auto& settings = shard.worker->run.settings;
  const auto most_tokens = std::min<std::int64_t>(
    std::int64_t{settings.data.max_prompt_tokens} + run.options.max_new_tokens,
    shard.worker->run.shapes.at(shard.replica.role).context_tokens());
  auto own_options = run.options;
  own_options.max_new_tokens = most_tokens - 1; // after the first token
  const auto prompts = short_prompts(run.rows);
  if (!has_leaders(shard, run)) {
    answer_turns(shard, run, prompts, own_options, nullptr);
    return {};
  }
  make_ready(shard, run);
  LedByAgents led(shard, run, most_tokens);
  const auto programs = led.begin(); // ends before what it leads
  try {
    answer_turns(shard, run, prompts, own_options, &led.turns());
  } catch (const std::exception& error) {
    led.turns().fail(to_failure(error, "generation"));
    throw;
  }
  return led.take();
}

void add_agent_sums(WorkerContext& worker, models::MetricSums& sums) {
  const auto counts = worker.agents->take_counts();
  const auto sessions = static_cast<double>(counts.sessions);
  const auto total = [&](const char* name, std::uint64_t number) {
    sums.add_total(name, static_cast<double>(number));
  };
  total("agents/failed", counts.failed);
  total("agents/retries", counts.retries);
  total("agents/unused_turns", counts.unused_answers);
  sums.add("agents/turns", static_cast<double>(counts.answers), sessions);
  if (agents_of(worker.run.settings).from_outside())
    sums.add("agents/wait_s", counts.waited_s,
             static_cast<double>(counts.taken));
}

} // namespace troupe::actors
