// Offered bytes, read over sockets of this host: by the token, once, in time.
#include "net/transport/byte_offer.hpp"

#include "tests/support/net/strangers.hpp"
#include "tests/support/net/wire_tap.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <cstdlib>
#include <thread>

namespace troupe::net {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
using troupe::test::connect_to;

/// More than the kernel keeps for a reader that does not read.
constexpr std::size_t many_bytes = std::size_t{64} << 20;

std::vector<std::byte> numbered(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + (i >> 11));
  return bytes;
}

Descriptor greeted(const ByteOffer& offer, const std::string& greeting) {
  auto socket = connect_to(offer.port());
  EXPECT_EQ(::send(socket.get(), greeting.data(), greeting.size(), 0),
            static_cast<ssize_t>(greeting.size()));
  return socket;
}

/// Returns what comes until `most` bytes or the end.
std::vector<std::byte> received(const Descriptor& socket, std::size_t most) {
  std::vector<std::byte> bytes(most);
  std::size_t got = 0;
  while (got < most) {
    const auto came
      = ::recv(socket.get(), bytes.data() + got, most - got, MSG_WAITALL);
    if (came <= 0)
      break;
    got += static_cast<std::size_t>(came);
  }
  bytes.resize(got);
  return bytes;
}

/// Waits for the failure of a reader.
Failure failure_of(const ByteOffer& offer) {
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < end) {
    if (const auto failure = offer.failure())
      return *failure;
    ::poll(nullptr, 0, 5);
  }
  return {Errc::ok, "", "no reader failed", ""};
}

TEST(ByteOffer, GivesAllBytesToEachReaderThatHasTheToken) {
  const auto bytes = numbered(3'000'001);
  const ByteOffer offer({.who = "weights"}, bytes);
  EXPECT_EQ(offer.token().size(), 64U);
  EXPECT_EQ(offer.certificate(), "");
  std::vector<std::vector<std::byte>> got(2);
  std::vector<std::thread> readers;
  for (std::size_t rank = 0; rank < got.size(); ++rank)
    readers.emplace_back([&, rank] {
      const auto socket
        = greeted(offer, offer.token() + "0000000" + std::to_string(rank));
      got[rank] = received(socket, bytes.size());
    });
  for (auto& reader : readers)
    reader.join();
  EXPECT_TRUE(got[0] == bytes);
  EXPECT_TRUE(got[1] == bytes);
  EXPECT_FALSE(offer.failure());
}

TEST(ByteOffer, TokensOfTwoOffersDiffer) {
  const auto bytes = numbered(8);
  const ByteOffer one({.who = "weights"}, bytes);
  const ByteOffer other({.who = "weights"}, bytes);
  EXPECT_NE(one.token(), other.token());
}

TEST(ByteOffer, AStrangerIsClosedWithoutAByteAndHarmsNobody) {
  const auto bytes = numbered(4096);
  const ByteOffer offer({.who = "weights"}, bytes);
  EXPECT_TRUE(
    received(greeted(offer, std::string(72, '0')), bytes.size()).empty());
  const test::SilentStrangers silent(offer.port(), 3);
  EXPECT_FALSE(offer.failure());
  const auto socket = greeted(offer, offer.token() + "00000000");
  EXPECT_TRUE(received(socket, bytes.size()) == bytes);
}

TEST(ByteOffer, ARankReadsOnceAndHasANumber) {
  const auto bytes = numbered(4096);
  for (const auto* second : {"00000003", "ffffffff", "0000000x"}) {
    const ByteOffer offer({.who = "weights"}, bytes);
    const auto first = greeted(offer, offer.token() + "00000003");
    EXPECT_EQ(received(first, bytes.size()).size(), bytes.size());
    const auto again = greeted(offer, offer.token() + second);
    EXPECT_TRUE(received(again, bytes.size()).empty()) << second;
    EXPECT_EQ(failure_of(offer).code, Errc::refused) << second;
  }
}

TEST(ByteOffer, AReaderThatClosesTooEarlyIsAFailureWithItsBytes) {
  for (const auto size : {std::size_t{100'000}, many_bytes}) {
    const auto bytes = numbered(size);
    const ByteOffer offer({.who = "weights"}, bytes);
    {
      const auto socket = greeted(offer, offer.token() + "00000000");
      EXPECT_EQ(received(socket, 1000).size(), 1000U);
    }
    const auto failure = failure_of(offer);
    EXPECT_EQ(failure.code, Errc::peer_lost) << size;
    EXPECT_THAT(failure.who, HasSubstr("weights, reader 0 (127.0.0.1:"));
    EXPECT_THAT(failure.what,
                HasSubstr(" of " + std::to_string(size) + " bytes"));
  }
}

TEST(ByteOffer, AReaderThatStopsIsClosedAtTheDeadline_I7) {
  for (const auto size : {std::size_t{100'000}, many_bytes}) {
    const auto bytes = numbered(size);
    const ByteOffer offer({.who = "weights", .progress_deadline = 100ms},
                          bytes);
    const auto socket = greeted(offer, offer.token() + "00000000");
    const auto failure = failure_of(offer);
    EXPECT_EQ(failure.code, Errc::deadline) << size;
    EXPECT_THAT(failure.what, HasSubstr("it took no byte for 100 ms"));
    EXPECT_LE(received(socket, size).size(), size);
  }
}

TEST(ByteOffer, IsGoneWithItsObject) {
  const auto bytes = numbered(many_bytes);
  std::uint16_t port = 0;
  Descriptor open;
  {
    const ByteOffer offer({.who = "weights"}, bytes);
    port = offer.port();
    open = greeted(offer, offer.token() + "00000000"); // and does not read
  }
  EXPECT_LT(received(open, bytes.size()).size(), bytes.size());
  EXPECT_ANY_THROW(connect_to(port));
}

/// Reads an encrypted offer as servers do: by Python's ssl.
constexpr const char* python_reader = R"(
import socket, ssl, sys
port, token, certificate, size, into = sys.argv[1:]
trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
trust.check_hostname = False
trust.load_verify_locations(certificate)
stream = trust.wrap_socket(socket.create_connection(('127.0.0.1', int(port))))
stream.sendall(token.encode() + b'00000000')
data = b''
while len(data) < int(size):
    data += stream.recv(1 << 16)
open(into, 'wb').write(data)
)";

int read_by_python(std::uint16_t port, const std::string& token,
                   const std::string& certificate, std::size_t size,
                   const support::TempFolder& folder) {
  support::write_text(folder / "reader.py", python_reader);
  support::write_text(folder / "certificate.pem", certificate);
  const auto command = "python3 " + (folder / "reader.py").string() + " "
                       + std::to_string(port) + " " + token + " "
                       + (folder / "certificate.pem").string() + " "
                       + std::to_string(size) + " " + (folder / "read").string()
                       + " 2> " + (folder / "errors").string();
  return std::system(command.c_str());
}

TEST(ByteOffer, AnEncryptedOneIsReadByWhoExpectsItsCertificate) {
  const std::string secret = "these are the weights";
  std::string text(200'000, 'w');
  text.replace(1000, secret.size(), secret);
  const auto bytes = std::as_bytes(std::span(text));
  const ByteOffer offer({.who = "weights", .wire = OfferWire::encrypted},
                        bytes);
  const test::WireTap tap(offer.port());
  const support::TempFolder folder;
  ASSERT_EQ(read_by_python(tap.port(), offer.token(), offer.certificate(),
                           bytes.size(), folder),
            0)
    << support::read_text(folder / "errors");
  EXPECT_EQ(support::read_text(folder / "read"), text);
  EXPECT_FALSE(tap.saw(secret));
  EXPECT_FALSE(tap.saw(offer.token()));
  EXPECT_EQ(offer.certificate().find("PRIVATE"), std::string::npos);
  const ByteOffer another({.who = "weights", .wire = OfferWire::encrypted},
                          bytes);
  EXPECT_NE(read_by_python(another.port(), another.token(), offer.certificate(),
                           bytes.size(), folder),
            0);
}

} // namespace
} // namespace troupe::net
