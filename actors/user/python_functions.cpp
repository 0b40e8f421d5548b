#include "actors/user/python_functions.hpp"

#include "actors/user/python_memory.hpp"
#include "actors/user/user_work.hpp"
#include "config/settings/settings.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace troupe::actors {

namespace {

/// Parts of the samples per process: one that is slow holds up no other long.
constexpr std::size_t parts_per_process = 4;

/// Returns where units begin, and the end: [0, 4, 8] for two groups of four.
std::vector<std::size_t> bounds_of(const UserEntry& entry,
                                   std::span<Sample> samples) {
  std::vector<std::size_t> bounds = {0};
  for_each_unit(entry.call.kind, samples, [&](std::span<Sample> unit) {
    bounds.push_back(bounds.back() + unit.size());
  });
  return bounds;
}

/// One call: its samples in parts of whole units, each a line to be answered.
class PythonRound {
public:
  PythonRound(const UserEntry& entry, std::span<Sample> samples,
              detail::CarriedValues& carried);

  std::vector<std::string> lines() const;
  net::LineHandler handler();
  /// Throws the mistake of the first part that has one.
  void check(const WorkerContext& worker) const;

private:
  struct Part {
    std::vector<std::size_t> bounds; ///< of its units
    PythonMemory results = {};
    std::string mistake = {}; ///< empty: none
    std::size_t sample = 0;   ///< index of the one that it is about
  };

  void take(Part& part, const nlohmann::json& reply);

  const UserEntry& entry_;
  std::span<Sample> samples_;
  detail::CarriedValues& carried_;
  PythonMemory values_;
  nlohmann::json places_;
  std::vector<Part> parts_;
};

PythonRound::PythonRound(const UserEntry& entry, std::span<Sample> samples,
                         detail::CarriedValues& carried)
  : entry_(entry),
    samples_(samples),
    carried_(carried),
    places_(values_.write(samples, entry.call.reads)) {
  const auto bounds = bounds_of(entry, samples);
  const auto units = bounds.size() - 1;
  const auto count
    = std::min(units, std::size_t{entry.python->processes} * parts_per_process);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t part) {
      return bounds.begin() + static_cast<std::ptrdiff_t>(units * part / count);
    };
    parts_.push_back({.bounds = {at(i), at(i + 1) + 1}});
  }
}

std::vector<std::string> PythonRound::lines() const {
  std::vector<std::string> lines;
  auto carried = nlohmann::json::object();
  for (const auto& value : entry_.call.carried_in)
    carried[value.name] = carried_.at(value.name);
  for (const auto& part : parts_)
    lines.push_back(nlohmann::json{
      {"id", lines.size()},
      {"in", values_.path()},
      {"out", part.results.path()},
      {"num", samples_.size()},
      {"places", places_},
      {"bounds", part.bounds},
      {"carried",
       carried}}.dump());
  return lines;
}

void PythonRound::take(Part& part, const nlohmann::json& reply) {
  if (reply.contains("error")) {
    part.mistake = reply.at("error").get<std::string>();
    part.sample = reply.at("sample").get<std::size_t>();
    return;
  }
  part.results.read(reply.at("places"), entry_.call.writes,
                    samples_.subspan(part.bounds.front(),
                                     part.bounds.back() - part.bounds.front()));
  for (const auto& value : entry_.call.carried_out)
    carried_[value.name] = reply.at("carried").at(value.name).get<double>();
}

net::LineHandler PythonRound::handler() {
  net::LineHandler handler;
  handler.line_of
    = [this](std::string_view text) -> std::optional<std::size_t> {
    const auto reply = nlohmann::json::parse(text, nullptr, false);
    const auto id = reply.is_object() ? reply.find("id") : reply.end();
    if (id == reply.end() || !id->is_number_unsigned()
        || id->get<std::size_t>() >= parts_.size())
      return std::nullopt;
    return id->get<std::size_t>();
  };
  handler.on_reply = [this](std::size_t line, std::string_view text) {
    try {
      take(parts_[line], nlohmann::json::parse(text));
    } catch (const std::exception& error) {
      parts_[line].mistake = error.what();
    }
  };
  handler.on_unmatched = [](std::string_view) {}; // only our program answers
  handler.on_loss
    = [this](std::size_t line, net::LineLoss, const std::string& why) {
        parts_[line].mistake = why;
        parts_[line].sample = parts_[line].bounds.front();
      };
  return handler;
}

void PythonRound::check(const WorkerContext& worker) const {
  for (const auto& part : parts_)
    if (!part.mistake.empty()) {
      const Sample& sample
        = samples_[std::min(part.sample, samples_.size() - 1)];
      throw FailureError{
        {.code = Errc::bad_input,
         .who = fmt::format("{}, function {}", worker.who, entry_.call.name),
         .what
         = fmt::format("{} (sample {} of step {})", part.mistake, sample.id(),
                       step_number(StepId{sample.arrow().step})),
         .cause = ""}};
    }
}

} // namespace

net::LinePrograms& PythonFunctions::programs(const WorkerContext& worker,
                                             const UserEntry& entry) {
  auto& made = programs_[entry.call.name];
  if (made)
    return *made;
  net::LineProgramOptions options;
  options.name
    = fmt::format("{}_of_worker_{}", entry.call.name, worker.worker.value);
  options.argv = python_function_command(entry);
  options.log_folder = worker.run.folder / "logs";
  options.workers = entry.python->processes;
  options.deadline = {.silence = std::chrono::seconds(
                        worker.run.settings.cluster.own_actor_timeout_s),
                      .setting = "cluster.own_actor_timeout_s"};
  options.ready_line = python_function_ready;
  made = std::make_unique<net::LinePrograms>(std::move(options));
  return *made;
}

void PythonFunctions::run(const WorkerContext& worker, const UserEntry& entry,
                          std::span<Sample> samples,
                          detail::CarriedValues& carried) {
  if (samples.empty())
    return;
  PythonRound round(entry, samples, carried);
  programs(worker, entry).run(round.lines(), round.handler(), &stopped_);
  round.check(worker);
}

} // namespace troupe::actors
