// Sessions at the two ends of a pair of sockets, driven in turn.
#include "config/base/error.hpp"
#include "net/base/descriptor.hpp"
#include "net/transport/tls.hpp"

#include "tests/support/net/test_tls.hpp"
#include <gmock/gmock.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace troupe::net {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using Next = TlsSession::Next;
using Role = TlsSession::Role;
using troupe::test::new_run_tls;

/// Two sockets whose bytes pass through here.
class Wire {
public:
  Wire() {
    for (auto& side : sides_) {
      int pair[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
      side = {Descriptor(pair[0]), Descriptor(pair[1])};
    }
  }
  int client() const {
    return sides_[0].first.get();
  }
  int server() const {
    return sides_[1].first.get();
  }
  /// Forwards the bytes that are there.
  void pump() {
    for (std::size_t from = 0; from < 2; ++from) {
      std::array<char, 65536> block{};
      ssize_t came = 0;
      while ((came = ::recv(sides_[from].second.get(), block.data(),
                            block.size(), 0))
             > 0) {
        seen_.append(block.data(), static_cast<std::size_t>(came));
        EXPECT_EQ(::send(sides_[1 - from].second.get(), block.data(),
                         static_cast<std::size_t>(came), 0),
                  came);
      }
    }
  }
  /// Closes the direction towards the client.
  void hang_up() {
    sides_[0].second = Descriptor();
  }
  const std::string& seen() const {
    return seen_;
  }

private:
  std::array<std::pair<Descriptor, Descriptor>, 2> sides_; ///< the client's,
                                                           ///< ours
  std::string seen_;
};

/// Runs both handshakes until each has succeeded or failed.
std::pair<Next, Next> greet_both(Wire& wire, TlsSession& client,
                                 TlsSession& server) {
  Next one = Next::readable, other = Next::readable;
  for (int round = 0; round < 10; ++round) {
    if (one == Next::readable)
      one = client.shake_hands();
    wire.pump();
    if (other == Next::readable)
      other = server.shake_hands();
    wire.pump();
  }
  return {one, other};
}

/// Sends `bytes` to the other end and returns what arrived there.
std::string carried(Wire& wire, TlsSession& from, TlsSession& to,
                    const std::string& bytes) {
  std::string got;
  std::vector<std::byte> block(5000); // no multiple of a block size
  for (std::size_t sent = 0; got.size() < bytes.size();) {
    if (sent < bytes.size()) {
      const auto moved
        = from.write({reinterpret_cast<const std::byte*>(bytes.data()) + sent,
                      bytes.size() - sent});
      EXPECT_NE(moved.next, Next::broken) << from.why();
      sent += moved.bytes;
    }
    wire.pump();
    for (TlsSession::Moved moved; (moved = to.read(block)).bytes != 0;)
      got.append(reinterpret_cast<const char*>(block.data()), moved.bytes);
    if (!to.why().empty() || !from.why().empty())
      return to.why() + from.why();
  }
  return got;
}

std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 300'000; ++i)
    text += "nobody may read this " + std::to_string(i) + "; ";
  return text;
}

TEST(Tls, TrafficBetweenPeersIsUnreadable) {
  const auto run = new_run_tls();
  Wire wire;
  TlsSession client(*run, wire.client(), Role::connects);
  TlsSession server(*run, wire.server(), Role::accepts);
  EXPECT_EQ(greet_both(wire, client, server),
            std::pair(Next::more, Next::more));
  const std::string text = long_text();
  EXPECT_EQ(carried(wire, client, server, text), text);
  EXPECT_EQ(carried(wire, server, client, text), text);
  EXPECT_GT(wire.seen().size(), 2 * text.size());
  EXPECT_EQ(wire.seen().find("nobody may read this"), std::string::npos);
  EXPECT_EQ(wire.seen().find("y may re"), std::string::npos);
}

TEST(Tls, AKeyIsReplacedAtItsLimit) {
  const auto run = new_run_tls();
  const std::string text = long_text();
  std::size_t wire_bytes[2] = {};
  for (const bool changes : {false, true}) {
    Wire wire;
    TlsSession client(*run, wire.client(), Role::connects,
                      changes ? 40'000 : text.size() + 1);
    TlsSession server(*run, wire.server(), Role::accepts);
    greet_both(wire, client, server);
    EXPECT_EQ(carried(wire, client, server, text), text);
    EXPECT_EQ(carried(wire, server, client, text), text);
    wire_bytes[changes ? 1 : 0] = wire.seen().size();
  }
  // a message of 5 bytes in a record with 22 more, every third of 19 records
  EXPECT_NEAR(static_cast<double>(wire_bytes[1] - wire_bytes[0]), 6 * 27, 30);
}

TEST(Tls, ManyRecordsShareOneWrite) {
  const auto run = new_run_tls();
  int pair[2], packets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, packets),
            0);
  const Descriptor one(pair[0]), other(pair[1]);
  const Descriptor first(packets[0]), second(packets[1]);
  TlsSession client(*run, one.get(), Role::connects);
  TlsSession server(*run, other.get(), Role::accepts);
  for (int round = 0; round < 3; ++round) {
    client.shake_hands();
    server.shake_hands();
  }
  // from here on, what is written at once is read at once
  ASSERT_GE(::dup2(first.get(), one.get()), 0);
  ASSERT_GE(::dup2(second.get(), other.get()), 0);
  const std::vector<std::byte> bytes(100'000, std::byte{1});
  EXPECT_EQ(client.write(bytes).bytes, bytes.size());
  std::vector<std::byte> records(2 * bytes.size());
  EXPECT_GT(::recv(other.get(), records.data(), records.size(), 0),
            static_cast<ssize_t>(bytes.size()));
}

TEST(Tls, AProcessOfAnotherRunIsRefusedByBothSides) {
  const auto ours = new_run_tls(), theirs = new_run_tls();
  Wire wire;
  TlsSession client(*theirs, wire.client(), Role::connects);
  TlsSession server(*ours, wire.server(), Role::accepts);
  EXPECT_EQ(greet_both(wire, client, server),
            std::pair(Next::broken, Next::broken));
  EXPECT_THAT(client.why(), HasSubstr("certificate verify failed"));
  EXPECT_THAT(server.why(), HasSubstr("alert"));
  EXPECT_FALSE(client.lost_socket() || server.lost_socket());
}

/// An OpenSSL client that accepts any server and presents `pem`, if any.
std::string reply_to_stranger(const std::string& pem) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
    SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  const TlsContext shown(pem.empty() ? make_run_certificate() : pem);
  if (!pem.empty()) {
    SSL_CTX_use_certificate(context.get(),
                            SSL_CTX_get0_certificate(shown.get()));
    SSL_CTX_use_PrivateKey(context.get(), SSL_CTX_get0_privatekey(shown.get()));
  }
  const auto run = new_run_tls();
  Wire wire;
  TlsSession server(*run, wire.server(), Role::accepts);
  const std::unique_ptr<SSL, decltype(&SSL_free)> stranger(
    SSL_new(context.get()), &SSL_free);
  SSL_set_fd(stranger.get(), wire.client());
  Next next = Next::readable;
  for (int round = 0; round < 10 && next == Next::readable; ++round) {
    SSL_connect(stranger.get());
    wire.pump();
    next = server.shake_hands();
    wire.pump();
  }
  EXPECT_EQ(next, Next::broken);
  return server.why();
}

TEST(Tls, AClientWithoutTheCertificateIsRefused) {
  EXPECT_THAT(reply_to_stranger(""), HasSubstr("did not return a certificate"));
  EXPECT_THAT(reply_to_stranger(make_run_certificate()),
              HasSubstr("certificate verify failed"));
}

TEST(Tls, NonsenseIsRefusedAndHalfAHandshakeWaits) {
  const auto run = new_run_tls();
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(64, '\xff')}) {
    Wire wire;
    TlsSession server(*run, wire.server(), Role::accepts);
    ::send(wire.client(), bytes.data(), bytes.size(), 0);
    wire.pump();
    EXPECT_EQ(server.shake_hands(), Next::broken);
    EXPECT_THAT(server.why(), AnyOf(HasSubstr("http request"),
                                    HasSubstr("wrong version number")));
  }
  Wire wire;
  TlsSession client(*run, wire.client(), Role::connects);
  TlsSession server(*run, wire.server(), Role::accepts);
  EXPECT_EQ(client.shake_hands(), Next::readable);
  wire.pump();
  EXPECT_EQ(server.shake_hands(), Next::readable);
  EXPECT_EQ(client.shake_hands(), Next::readable) << "nothing was passed on";
  wire.hang_up();
  EXPECT_EQ(client.shake_hands(), Next::ended);
}

TEST(Tls, ASocketThatBreaksInTheHandshakeRefusesNothing) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
  const Descriptor one(pair[0]);
  TlsSession client(*new_run_tls(), one.get(), Role::connects);
  EXPECT_EQ(client.shake_hands(), Next::readable);
  ::close(pair[1]); // with what nobody has read, as a process that is killed
  EXPECT_EQ(client.shake_hands(), Next::broken);
  EXPECT_THAT(client.why(), HasSubstr("reset"));
  EXPECT_TRUE(client.lost_socket());
}

TEST(Tls, AnErrorStaysInItsSession) {
  const auto run = new_run_tls();
  Wire wire, hostile;
  TlsSession client(*run, wire.client(), Role::connects);
  TlsSession server(*run, wire.server(), Role::accepts);
  greet_both(wire, client, server);
  ::send(hostile.server(), "GET / HTTP/1.1\r\n\r\n", 18, 0);
  TlsSession refuses(*run, hostile.client(), Role::accepts);
  hostile.pump();
  EXPECT_EQ(refuses.shake_hands(), Next::broken);
  std::array<std::byte, 8> nothing{};
  EXPECT_EQ(server.read(nothing).next, Next::readable);
  EXPECT_EQ(carried(wire, client, server, "still here"), "still here");
}

TEST(Tls, ATruncatedTextIsRefused) {
  const std::string whole = make_run_certificate();
  EXPECT_NO_THROW(TlsContext("a token\n" + whole + "\nmore"));
  const auto key_end = whole.find("-----BEGIN CERTIFICATE");
  ASSERT_NE(key_end, std::string::npos);
  const std::string other = make_run_certificate();
  const auto other_end = other.find("-----BEGIN CERTIFICATE");
  for (const std::string& text :
       {std::string(), whole.substr(0, key_end), whole.substr(key_end),
        whole.substr(0, whole.size() / 2),
        whole.substr(0, key_end) + other.substr(other_end)})
    EXPECT_THROW(TlsContext{text}, FailureError) << text;
}

} // namespace
} // namespace troupe::net
