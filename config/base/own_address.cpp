#include "config/base/own_address.hpp"

#include "config/base/error.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace troupe {

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

[[noreturn]] void no_address(const std::string& what, const std::string& why) {
  throw FailureError({.code = Errc::io,
                      .who = "this host",
                      .what = what + "; set cluster.bind",
                      .cause = why});
}

Addresses addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(host.c_str(), "9", &hints, &first);
  if (error != 0)
    no_address("finds no address of " + host, ::gai_strerror(error));
  return {first, &::freeaddrinfo};
}

std::string text_of(const sockaddr* address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  const auto* ip = reinterpret_cast<const sockaddr_in*>(address);
  ::inet_ntop(AF_INET, &ip->sin_addr, text.data(), text.size());
  return text.data();
}

} // namespace

bool is_loopback(const std::string& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1)
    return ntohl(four.s_addr) >> 24 == 127;
  in6_addr six{};
  return ::inet_pton(AF_INET6, address.c_str(), &six) == 1
         && IN6_IS_ADDR_LOOPBACK(&six);
}

std::string address_towards(const std::string& host) {
  const Addresses to = addresses_of(host);
  const int probe = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  socklen_t size = sizeof(own);
  const bool found
    = probe >= 0 && ::connect(probe, to->ai_addr, to->ai_addrlen) == 0
      && ::getsockname(probe, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  const int error = errno;
  if (probe >= 0)
    ::close(probe);
  if (!found)
    no_address("has no way to " + host, std::strerror(error));
  return text_of(reinterpret_cast<sockaddr*>(&own));
}

std::string address_of_this_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const Addresses found = addresses_of(name.data());
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next)
    if (const auto text = text_of(at->ai_addr); !text.starts_with("127."))
      return text;
  no_address(std::string("is known to itself as a loopback address only (")
               + name.data() + ")",
             "");
}

bool is_other_host(const std::string& host) {
  if (is_loopback(host))
    return false;
  try {
    const auto there = text_of(addresses_of(host)->ai_addr);
    return !is_loopback(there) && address_towards(host) != there;
  } catch (const FailureError&) {
    return false; // who connects to it says more
  }
}

} // namespace troupe
