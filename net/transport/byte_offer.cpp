#include "net/transport/byte_offer.hpp"

#include "config/base/random_hex.hpp"
#include "net/transport/offer_reader.hpp"

#include <boost/asio/io_context.hpp>

#include <thread>

namespace troupe::net {

struct ByteOffer::Impl {
  explicit Impl(ByteOfferSpec spec, std::span<const std::byte> bytes)
    : state{.who = spec.who,
            .bytes = bytes,
            .token = random_hex(defaults::token_bytes),
            .progress_deadline = spec.progress_deadline} {
    if (spec.wire == OfferWire::encrypted) {
      const auto pem = make_run_certificate();
      certificate = certificate_of(pem);
      state.tls.emplace(pem, TlsPeers::anybody);
    }
    listen_on_first_free(spec.where, spec.who, [&](std::uint16_t port) {
      listener
        = std::make_shared<Listener>(io, spec.who, spec.where.address, port);
    });
    listener->start([this](boost::asio::ip::tcp::socket socket,
                           std::string peer, PendingConnections::Entry entry) {
      std::make_shared<OfferReader>(std::move(socket), std::move(peer),
                                    std::move(entry), state)
        ->start();
    });
    thread = std::thread([this] { io.run(); });
  }
  /// Readers in the middle of an operation end with `io`.
  ~Impl() {
    io.stop();
    thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  OfferState state;
  std::string certificate;
  boost::asio::io_context io{1};
  std::shared_ptr<Listener> listener;
  std::thread thread;
};

ByteOffer::ByteOffer(ByteOfferSpec spec, std::span<const std::byte> bytes)
  : impl_(std::make_unique<Impl>(std::move(spec), bytes)) {}

ByteOffer::~ByteOffer() = default;

std::uint16_t ByteOffer::port() const {
  return impl_->listener->port();
}

const std::string& ByteOffer::token() const {
  return impl_->state.token;
}

const std::string& ByteOffer::certificate() const {
  return impl_->certificate;
}

std::optional<Failure> ByteOffer::failure() const {
  const std::lock_guard lock(impl_->state.mutex);
  return impl_->state.failure;
}

} // namespace troupe::net
