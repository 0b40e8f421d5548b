#include "models/servers/vllm_server.hpp"

#include "models/servers/vllm_json.hpp"

#include <functional>
#include <thread>
#include <utility>

namespace troupe::models {

VllmServer::VllmServer(ServerSpec spec)
  : GenerationServer(spec),
    offer_(std::move(spec.offer)),
    nccl_(std::move(spec.broadcast)) {
  const auto who = "weights for " + name();
  if (offer_)
    offer_->who = who;
  if (nccl_)
    nccl_->who = who;
}

void VllmServer::prepare(const RunContext& context) {
  weights_are_mixed_ = false;
  if (nccl_)
    return join_ranks(context);
  // one that runs already may have been made ready by an earlier run
  ask({.target = "/init_weight_transfer_engine", .body = R"({"init_info":{}})"},
      context);
}

net::HttpCall VllmServer::pause_call() const {
  return {.target = "/pause?mode=keep"};
}

net::HttpCall VllmServer::resume_call() const {
  return {.target = "/resume"};
}

/// Opens an update. One that failed at its end, in this run or in an earlier
/// one of a server that runs longer, is open still: vLLM closes it only when a
/// tensor is refused.
void VllmServer::open_update(const RunContext& context) {
  const net::HttpCall start{.target = "/start_weight_update"};
  if (ask_in_vain(start, context))
    return;
  give_up_update(context);
  ask(start, context);
}

/// Its reply says nothing: a file that does not exist, or tensors without
/// shapes, are refused in either case.
bool VllmServer::give_up_update(const RunContext& context) {
  ask_in_vain({.target = "/update_weights",
               .body = nccl_ ? vllm::refused_broadcast_body()
                             : vllm::update_body("", {})},
              context);
  return !weights_are_mixed_;
}

void VllmServer::send_tensors(const SentWeights& weights,
                              const RunContext& context) {
  if (nccl_)
    return send_by_nccl(weights, context);
  if (offer_)
    return send_over_tcp(weights, context);
  ask({.target = "/update_weights",
       .body = vllm::update_body(weights.path(), weights.tensors(),
                                 weights.adapter_scale())},
      context);
}

/// Offers the file for as long as the server takes it. A reader's failure is
/// the cause of what the server then says; one that hangs does not say it.
void VllmServer::send_over_tcp(const SentWeights& weights,
                               const RunContext& context) {
  const net::ByteOffer offer(*offer_, weights.bytes());
  const SentOverTcp tcp{.host = offer_->where.address,
                        .port = offer.port(),
                        .token = offer.token(),
                        .certificate = offer.certificate(),
                        .num_bytes = weights.bytes().size()};
  try {
    ask({.target = "/update_weights",
         .body = vllm::update_body("", weights.tensors(),
                                   weights.adapter_scale(), tcp)},
        context, [&] {
          if (const auto failed = offer.failure())
            throw FailureError(*failed);
        });
  } catch (const FailureError& error) {
    auto failure = error.failure();
    const auto first = offer.failure();
    if (!first || failure.who == first->who)
      throw;
    failure.cause = to_string(*first);
    throw FailureError(failure);
  }
}

/// Asks while `work`, the same calls of NCCL as the server's, runs on a thread
/// of its own. Who fails first ends the other: a rank that waits in NCCL would
/// wait for ever.
void VllmServer::ask_beside(const net::HttpCall& call,
                            const RunContext& context,
                            const std::function<void()>& work) {
  std::jthread ours([&] {
    try {
      work();
    } catch (const FailureError& error) {
      broadcast_->abort(error.failure());
    }
  });
  const auto throw_own_failure = [&] {
    if (const auto failed = broadcast_->failure())
      throw FailureError(*failed);
  };
  try {
    ask(call, context, throw_own_failure);
    ours.join();
    throw_own_failure();
  } catch (const FailureError& error) {
    auto failure = error.failure();
    broadcast_->abort(failure);
    const auto first = broadcast_->failure();
    if (!first || failure.who == first->who)
      throw;
    if (failure.cause.empty())
      failure.cause = to_string(*first);
    throw FailureError(failure);
  }
}

/// Makes a group with all ranks of the server, once in its life.
void VllmServer::join_ranks(const RunContext& context) {
  const auto num_ranks
    = 1
      + vllm::read_num_ranks(
        ask({.target = "/get_world_size?include_dp=true", .is_get = true},
            context));
  broadcast_ = std::make_unique<WeightBroadcast>(*nccl_);
  try {
    ask_beside({.target = "/init_weight_transfer_engine",
                .body = vllm::join_body(broadcast_->id(), num_ranks)},
               context, [&] { broadcast_->join(num_ranks); });
  } catch (const FailureError& error) {
    auto failure = error.failure();
    failure.what += "; NCCL here is " + broadcast_->nccl_version()
                    + ", and its ranks must have the same";
    throw FailureError(failure);
  }
}

void VllmServer::send_by_nccl(const SentWeights& weights,
                              const RunContext& context) {
  if (broadcast_->failure()) // an update failed, and the server goes on
    join_ranks(context);
  weights_are_mixed_ = true;
  ask_beside({.target = "/update_weights",
              .body = vllm::broadcast_body(weights.tensors())},
             context,
             [&] { broadcast_->send(weights.bytes(), weights.tensors()); });
}

void VllmServer::take_weights(const SentWeights& weights,
                              const SentWeights* base,
                              const std::string& version,
                              const RunContext& context) {
  open_update(context);
  if (base != nullptr)
    send_tensors(*base, context);
  send_tensors(weights, context);
  ask({.target = "/finish_weight_update", .body = vllm::finish_body(version)},
      context);
  require_version(vllm::read_version(
                    ask({.target = "/weight_info", .is_get = true}, context)),
                  version);
  weights_are_mixed_ = false;
}

net::HttpCall VllmServer::generate_call(const ServerRequest& request,
                                        const GenerateOptions& options) const {
  return {.target = "/inference/v1/generate",
          .body = vllm::generate_body(request, options)};
}

ServerAnswer VllmServer::read_answer(std::string_view body) const {
  return vllm::read_answer(body);
}

net::HttpCall VllmServer::score_call(std::span<const std::int32_t> ids) const {
  return {.target = "/inference/v1/generate", .body = vllm::score_body(ids)};
}

std::vector<float>
VllmServer::read_scores(std::string_view body,
                        std::span<const std::int32_t> ids) const {
  return vllm::read_scores(body, ids);
}

} // namespace troupe::models
