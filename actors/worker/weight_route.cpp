#include "actors/worker/weight_route.hpp"

#include "config/base/error.hpp"
#include "config/base/own_address.hpp"

namespace troupe::actors {

namespace {

bool goes_over_tcp(const Settings& settings) {
  return settings.rollout.engine.weights_over == "tcp";
}

} // namespace

ServerPlace place_of_server(const Settings& settings, const std::string& name,
                            const std::string& host) {
  ServerPlace place{.name = name, .is_other = is_other_host(host)};
  if (goes_over_tcp(settings))
    place.own_address = address_towards(host);
  return place;
}

std::optional<net::ByteOfferSpec> weight_offer(const Settings& settings,
                                               const ServerPlace& server) {
  const auto& engine = settings.rollout.engine;
  if (goes_over_tcp(settings)) {
    const bool clear
      = settings.cluster.tls == "off" || is_loopback(server.own_address);
    return net::ByteOfferSpec{
      .who = {},
      .where = listen_ports(server.own_address, settings.cluster.ports),
      .wire = clear ? net::OfferWire::clear : net::OfferWire::encrypted};
  }
  if (server.is_other && engine.weights_over == "memory")
    throw FailureError(
      {.code = Errc::bad_input,
       .who = "rollout.servers",
       .what
       = server.name
         + " is on another host, which cannot read the memory of its "
           "device"
         + (engine.kind == "vllm" ? "; try rollout.weights_over=tcp" : ""),
       .cause = ""});
  return std::nullopt;
}

std::optional<models::WeightBroadcastSpec>
weight_broadcast(const Settings& settings, int gpu) {
  if (settings.rollout.engine.weights_over != "nccl")
    return std::nullopt;
  return models::WeightBroadcastSpec{.who = {}, .gpu = gpu};
}

} // namespace troupe::actors
