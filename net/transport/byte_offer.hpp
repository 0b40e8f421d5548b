// Bytes that programs of others read over TCP while the object exists: weights
// for servers on other hosts. A reader sends the token of the offer and its own
// number (8 hexadecimal digits), takes all bytes from the first to the last,
// and closes. Each number reads once. Off loopback an offer may be encrypted by
// a certificate of its own, which readers learn together with the token.
#pragma once

#include "config/base/defaults.hpp"
#include "config/base/error.hpp"
#include "config/base/listen_ports.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace troupe::net {

enum class OfferWire : std::uint8_t { clear, encrypted };

struct ByteOfferSpec {
  std::string who;   ///< for messages: "weights for vLLM server of device 3"
  ListenPorts where; ///< address of this host that readers reach
  OfferWire wire = OfferWire::clear;
  std::chrono::milliseconds progress_deadline = defaults::pull_deadline;
};

class ByteOffer {
public:
  /// Listens, and serves readers on a thread of its own; `bytes` must outlive
  /// it. Throws FailureError (io) if no port is free or the address not local.
  ByteOffer(ByteOfferSpec spec, std::span<const std::byte> bytes);
  /// Closes the port and all connections.
  ~ByteOffer();
  ByteOffer(const ByteOffer&) = delete;
  ByteOffer& operator=(const ByteOffer&) = delete;

  std::uint16_t port() const;
  /// Returns the secret of this offer: hexadecimal digits.
  const std::string& token() const;
  /// Returns the certificate (PEM) that readers must see; empty: not encrypted.
  const std::string& certificate() const;
  /// Returns why the first reader that had the token failed, if one did:
  /// peer_lost, deadline (it stopped reading) or refused (it reads again).
  std::optional<Failure> failure() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::net
