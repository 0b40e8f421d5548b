#include "net/base/sha256.hpp"

#include "config/base/error.hpp"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

namespace troupe::net {

namespace {

/// A digest of bytes that come in parts.
class Sha256 {
public:
  Sha256() {
    const int begun = EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
    TROUPE_CHECK(begun == 1, "OpenSSL has no SHA-256");
  }
  void add(std::span<const std::byte> bytes) {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  std::string hex() {
    std::array<unsigned char, 32> digest{};
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    TROUPE_CHECK(size == digest.size(), "SHA-256 has 32 bytes");
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const unsigned char byte : digest) {
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
    return text;
  }

private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{
    EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

[[noreturn]] void cannot_be_read(const std::filesystem::path& file) {
  throw FailureError({.code = Errc::io,
                      .who = file.string(),
                      .what = "cannot be read for its SHA-256",
                      .cause = ""});
}

} // namespace

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

std::string sha256_of_file(const std::filesystem::path& file) {
  constexpr std::size_t part_bytes = std::size_t{1} << 20;
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    cannot_be_read(file);
  Sha256 sum;
  std::vector<char> part(part_bytes);
  while (stream) {
    stream.read(part.data(), static_cast<std::streamsize>(part.size()));
    sum.add(std::as_bytes(
      std::span(part).first(static_cast<std::size_t>(stream.gcount()))));
  }
  if (stream.bad())
    cannot_be_read(file);
  return sum.hex();
}

} // namespace troupe::net
