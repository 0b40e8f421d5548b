#include "net/base/sha256.hpp"

#include "config/base/error.hpp"

#include <openssl/evp.h>

#include <array>

namespace troupe::net {

std::string sha256_hex(std::span<const std::byte> bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned int size = 0;
  const int made = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size,
                              EVP_sha256(), nullptr);
  TROUPE_CHECK(made == 1 && size == digest.size(), "OpenSSL has no SHA-256");
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

} // namespace troupe::net
