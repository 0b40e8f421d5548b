#include "models/losses/python_loss.hpp"

#include "config/base/error.hpp"
#include "config/settings/workflow_file.hpp"
#include "net/base/page_block.hpp"
#include "net/child_programs/line_programs.hpp"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace troupe::models {

namespace {

constexpr std::size_t loss_alignment = 64; ///< of a tensor: a cache line

/// The tensors of a micro-batch by the names that the process knows.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Returns the outputs of the model, which get a gradient.
NamedTensors loss_outputs(const TrainBatch& batch) {
  NamedTensors found;
  for (const auto& [name, tensor] : NamedTensors{{"logprobs", batch.logprobs_T},
                                                 {"entropy", batch.entropy_T},
                                                 {"values", batch.values_T},
                                                 {"scores", batch.scores_N}})
    if (tensor.defined())
      found.emplace_back(name, tensor.detach().contiguous());
  return found;
}

/// Memory that the process maps, with the tensors of one micro-batch.
class LossMemory {
public:
  /// Returns the place after which `size_bytes` are reserved.
  std::size_t reserve(std::size_t size_bytes) {
    const auto begin = used_;
    used_
      += (size_bytes + loss_alignment - 1) / loss_alignment * loss_alignment;
    return begin;
  }
  /// Makes room for what was reserved. Throws FailureError (io).
  void allocate(const std::string& who) {
    used_ = std::max(used_, loss_alignment);
    if (block_.size_bytes() >= used_)
      return;
    block_ = net::PageBlock(2 * used_, net::PageSharing::by_descriptor);
    if (!block_.place())
      throw FailureError{{.code = Errc::io,
                          .who = who,
                          .what = "no memory file for a loss in Python",
                          .cause = ""}};
  }
  void clear() {
    used_ = 0;
  }
  void write(std::size_t begin, const void* from, std::size_t size_bytes) {
    if (size_bytes > 0)
      std::memcpy(block_.data() + begin, from, size_bytes);
  }
  /// Returns a copy of the floats of `like`'s shape.
  at::Tensor read(std::size_t begin, const at::Tensor& like) const {
    at::Tensor copy = at::empty_like(like);
    if (copy.nbytes() > 0)
      std::memcpy(copy.mutable_data_ptr<float>(), block_.data() + begin,
                  copy.nbytes());
    return copy;
  }
  std::string path() const {
    const auto place = block_.place().value();
    return fmt::format("/proc/{}/fd/{}", place.process, place.descriptor);
  }
  std::size_t size_bytes() const {
    return block_.size_bytes();
  }

private:
  net::PageBlock block_;
  std::size_t used_ = 0;
};

net::LineProgramOptions loss_program(const LossEntry& entry,
                                     const PythonLossRun& run) {
  net::LineProgramOptions options;
  options.name = run.process;
  options.argv = python_loss_command(entry);
  options.log_folder = run.log_folder;
  options.deadline
    = {.silence = run.deadline, .setting = "cluster.own_actor_timeout_s"};
  options.ready_line = python_loss_ready;
  return options;
}

/// The process of one device, and its memory.
class PythonLoss {
public:
  PythonLoss(const LossEntry& entry, PythonLossRun run)
    : prefix_(entry.metric_prefix),
      mean_over_(entry.mean_over),
      run_(std::move(run)),
      options_(loss_program(entry, run_)) {}

  LossResult compute(const TrainBatch& batch, const Denominators& denominators);

private:
  /// Writes the micro-batch; returns the line that says where it is.
  nlohmann::json write(const TrainBatch& batch, const NamedTensors& outputs);
  nlohmann::json ask(const std::string& line);
  [[noreturn]] void refuse(const std::string& what) const;
  double own_weight(const TrainBatch& batch) const;

  std::string prefix_;
  std::string mean_over_;
  PythonLossRun run_;
  net::LineProgramOptions options_;
  std::optional<net::LinePrograms> program_; ///< from the first micro-batch on
  LossMemory memory_;
  std::mutex mutex_; ///< one micro-batch at a time
};

void PythonLoss::refuse(const std::string& what) const {
  throw FailureError{
    {.code = Errc::bad_input, .who = run_.who, .what = what, .cause = ""}};
}

nlohmann::json PythonLoss::write(const TrainBatch& batch,
                                 const NamedTensors& outputs) {
  NamedTensors inputs = outputs;
  inputs.emplace_back("mask", batch.mask_T);
  for (const auto& [key, column_T] : batch.columns)
    inputs.emplace_back("key " + key, column_T);
  auto line = nlohmann::json{{"id", 0}, {"inputs", nlohmann::json::object()}};
  memory_.clear();
  const auto offsets_bytes = batch.cu_seqlens.size() * sizeof(std::int64_t);
  const auto offsets = memory_.reserve(offsets_bytes);
  for (auto& [name, tensor] : inputs) {
    tensor = tensor.contiguous();
    line["inputs"][name] = {memory_.reserve(tensor.nbytes()), tensor.numel()};
  }
  for (const auto& [name, tensor] : outputs)
    line["gradients"][name] = memory_.reserve(tensor.nbytes());
  memory_.allocate(run_.who);
  memory_.write(offsets, batch.cu_seqlens.data(), offsets_bytes);
  for (const auto& [name, tensor] : inputs)
    memory_.write(line["inputs"][name][0].get<std::size_t>(),
                  tensor.const_data_ptr<float>(), tensor.nbytes());
  line["offsets"] = {offsets, batch.cu_seqlens.size()};
  line["memory"] = {memory_.path(), memory_.size_bytes()};
  return line;
}

nlohmann::json PythonLoss::ask(const std::string& line) {
  nlohmann::json reply;
  std::string mistake;
  net::LineHandler handler;
  handler.line_of = [](std::string_view) { return std::optional(0UL); };
  handler.on_reply = [&](std::size_t, std::string_view text) {
    reply = nlohmann::json::parse(text, nullptr, false);
  };
  handler.on_unmatched = [](std::string_view) {}; // only our program answers
  handler.on_loss = [&](std::size_t, net::LineLoss, const std::string& why) {
    mistake = why;
  };
  if (!program_)
    program_.emplace(options_);
  program_->run(std::vector{line}, handler, run_.stop);
  if (reply.is_object() && reply.contains("error"))
    mistake = reply.at("error").get<std::string>();
  if (!mistake.empty())
    refuse(mistake);
  if (!reply.is_object() || !reply.contains("loss"))
    refuse("its process wrote no loss");
  return reply;
}

/// Returns this micro-batch's part of the denominator, the weight of its sums.
double PythonLoss::own_weight(const TrainBatch& batch) const {
  const at::Tensor& weights_T
    = mean_over_.empty() ? batch.mask_T : batch.at(mean_over_);
  return at::dot(weights_T, batch.mask_T).item<float>();
}

LossResult PythonLoss::compute(const TrainBatch& batch,
                               const Denominators& denominators) {
  const std::lock_guard lock(mutex_);
  const auto outputs = loss_outputs(batch);
  const double denominator
    = mean_over_.empty() ? denominators.tokens : denominators.weights;
  auto line = write(batch, outputs);
  line["denominator"] = denominator;
  line["tokens"] = denominators.tokens;
  line["sequences"] = denominators.sequences;
  const auto reply = ask(line.dump());

  // autograd of this side passes exactly these gradients to the outputs
  at::Tensor carrier = at::zeros({}, at::kFloat);
  const NamedTensors leaves = {{"logprobs", batch.logprobs_T},
                               {"entropy", batch.entropy_T},
                               {"values", batch.values_T},
                               {"scores", batch.scores_N}};
  for (const auto& name : reply.at("used")) {
    const auto leaf = std::ranges::find(leaves, name.get<std::string>(),
                                        &NamedTensors::value_type::first);
    if (leaf == leaves.end() || !leaf->second.defined())
      refuse("its process wrote a gradient of no output");
    const auto begin = line["gradients"][leaf->first].get<std::size_t>();
    carrier
      = carrier + at::dot(leaf->second, memory_.read(begin, leaf->second));
  }
  const auto loss = reply.at("loss").get<double>();
  LossResult result{.loss = carrier - carrier.detach() + loss, .sums = {}};
  const double weight = own_weight(batch);
  result.sums.add(prefix_ + "loss", loss * denominator, weight);
  for (const auto& [name, sum] : reply.at("metrics").items())
    result.sums.add(prefix_ + name, sum.get<double>(), weight);
  return result;
}

} // namespace

LossEntry python_loss_entry(const FileCall& call, bool scalar_head) {
  LossEntry entry;
  entry.name = call.fn;
  entry.metric_prefix = call.role + "/";
  entry.mean_over = call.python->mean_over;
  entry.python = python_function(call.fn);
  entry.reads = {{"sequence_ids"}, {"loss_mask"}};
  auto outputs = call.python->outputs;
  if (outputs.empty())
    outputs = scalar_head ? std::vector<std::string>{"values", "scores"}
                          : std::vector<std::string>{"logprobs"};
  const auto has = [&](const char* word) {
    return std::ranges::find(outputs, word) != outputs.end();
  };
  entry.exposes = {.logprobs = has("logprobs"),
                   .entropy = has("entropy"),
                   .values = has("values"),
                   .scores = has("scores")};
  entry.columns = call.reads;
  for (const auto& [key, word] : call.renames)
    std::ranges::replace(entry.columns, key, word);
  for (const auto& key : entry.reads) // which the engine packs itself
    std::erase(entry.columns, key.name);
  bind_python(entry, {});
  return entry;
}

void bind_python(LossEntry& entry, PythonLossRun run) {
  const auto process = std::make_shared<PythonLoss>(entry, std::move(run));
  entry.function
    = [process](const TrainBatch& batch, const Denominators& denominators,
                const LossSettings&) {
        return process->compute(batch, denominators);
      };
}

} // namespace troupe::models
