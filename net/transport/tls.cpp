#include "net/transport/tls.hpp"

#include "config/base/error.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace troupe::net {

namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

/// Returns the first reason in this thread's error queue and clears the queue.
std::string take_tls_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

void check_tls(bool done, const char* what) {
  TROUPE_CHECK(done, std::string(what) + ": " + take_tls_reason());
}

void add_text(Certificate& certificate, int kind, const char* text) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, text);
  check_tls(extension != nullptr
              && X509_add_ext(certificate.get(), extension, -1) == 1,
            "an extension");
  X509_EXTENSION_free(extension);
}

void set_times_and_names(Certificate& certificate) {
  std::uint64_t serial = 0;
  check_tls(
    RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) == 1,
    "a serial number");
  X509* x509 = certificate.get();
  X509_set_version(x509, X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), serial);
  const auto days = [](ASN1_TIME* time, int number) {
    check_tls(X509_time_adj_ex(time, number, 0, nullptr) != nullptr, "a time");
  };
  days(X509_getm_notBefore(x509), -kCertificateDaysBefore);
  days(X509_getm_notAfter(x509), kCertificateDaysAfter);
  X509_NAME* name = X509_get_subject_name(x509);
  constexpr const char* common_name = "troupe run";
  X509_NAME_add_entry_by_txt(
    name, "CN", MBSTRING_ASC,
    reinterpret_cast<const unsigned char*>(common_name), -1, -1, 0);
  X509_set_issuer_name(x509, name);
}

Bio text_source(const std::string& text) {
  TROUPE_CHECK(text.size() <= INT_MAX, "a text of 2 GB is no certificate");
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
          &BIO_free_all};
}

/// Password callback: the key must not prompt on a terminal.
int no_password(char*, int, int, void*) {
  return 0;
}

} // namespace

std::string make_run_certificate() {
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  Certificate certificate(X509_new(), &X509_free);
  check_tls(key && certificate, "a key");
  set_times_and_names(certificate);
  check_tls(X509_set_pubkey(certificate.get(), key.get()) == 1, "a key");
  add_text(certificate, NID_basic_constraints, "critical,CA:TRUE");
  check_tls(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0,
            "a signature");
  const Bio out(BIO_new(BIO_s_mem()), &BIO_free_all);
  check_tls(PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), nullptr,
                                          nullptr, 0, nullptr, nullptr)
                == 1
              && PEM_write_bio_X509(out.get(), certificate.get()) == 1,
            "a text");
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string certificate_of(const std::string& pem) {
  const auto begin = pem.find("-----BEGIN CERTIFICATE-----");
  TROUPE_CHECK(begin != pem.npos, "a text without a certificate");
  return pem.substr(begin);
}

TlsContext::TlsContext(const std::string& pem, TlsPeers peers)
  : context_(SSL_CTX_new(TLS_method()), &SSL_CTX_free) {
  SSL_CTX* context = context_.get();
  check_tls(context != nullptr, "a TLS context");
  const Key key(PEM_read_bio_PrivateKey(text_source(pem).get(), nullptr,
                                        &no_password, nullptr),
                &EVP_PKEY_free);
  const Certificate certificate(
    PEM_read_bio_X509(text_source(pem).get(), nullptr, &no_password, nullptr),
    &X509_free);
  if (!key || !certificate
      || SSL_CTX_use_certificate(context, certificate.get()) != 1
      || SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    throw FailureError({Errc::bad_input, "the run's certificate",
                        "not whole, or without its key", take_tls_reason()});
  check_tls(
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate.get()) == 1
      && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1
      && SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1
      && SSL_CTX_set_num_tickets(context, 0) == 1,
    "TLS 1.3");
  SSL_CTX_set_verify(context,
                     peers == TlsPeers::anybody
                       ? SSL_VERIFY_NONE
                       : SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_max_cert_list(context, kMaxHelloBytes);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE
                              | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kTlsReadBytes);
}

/// The socket below a session: OpenSSL's own BIO would raise SIGPIPE.
struct TlsWire {
  static TlsSession& session(BIO* bio) {
    return *static_cast<TlsSession*>(BIO_get_data(bio));
  }

  static int moved(BIO* bio, ssize_t bytes, int retry) {
    BIO_clear_retry_flags(bio);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
      BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    else if (bytes < 0)
      session(bio).error_ = errno;
    return static_cast<int>(bytes);
  }

  /// Queued after pending records, if any: their order is the session's.
  static int write(BIO* bio, const char* data, int size) {
    TlsSession& owner = session(bio);
    if (owner.gathering_ || !owner.records_.empty()) {
      const auto* bytes = reinterpret_cast<const std::byte*>(data);
      owner.records_.insert(owner.records_.end(), bytes, bytes + size);
      return size;
    }
    return moved(bio,
                 ::send(owner.socket_, data, static_cast<std::size_t>(size),
                        MSG_NOSIGNAL | MSG_DONTWAIT),
                 BIO_FLAGS_WRITE);
  }

  static int read(BIO* bio, char* into, int size) {
    const ssize_t bytes = ::recv(session(bio).socket_, into,
                                 static_cast<std::size_t>(size), MSG_DONTWAIT);
    if (bytes == 0)
      session(bio).ended_ = true;
    return moved(bio, bytes, BIO_FLAGS_READ);
  }

  static long control(BIO*, int what, long, void*) {
    return what == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* method = BIO_meth_new(
        BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket of a run");
      BIO_meth_set_write(method, &TlsWire::write);
      BIO_meth_set_read(method, &TlsWire::read);
      BIO_meth_set_ctrl(method, &TlsWire::control);
      return method;
    }();
    return made;
  }
};

TlsSession::TlsSession(const TlsContext& context, int socket, Role role,
                       std::uint64_t key_bytes)
  : ssl_(SSL_new(context.get())),
    socket_(socket),
    key_bytes_(key_bytes) {
  BIO* bio = BIO_new(TlsWire::method());
  check_tls(ssl_ != nullptr && bio != nullptr, "a TLS session");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio); // takes ownership
  if (role == Role::accepts)
    SSL_set_accept_state(ssl_);
  else
    SSL_set_connect_state(ssl_);
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

/// Interprets the result of a call. OpenSSL also considers this thread's error
/// queue, so each call begins with an empty one: errors of other sessions must
/// not count.
TlsSession::Next TlsSession::outcome(int result) {
  const int kind = SSL_get_error(ssl_, result);
  if (kind == SSL_ERROR_NONE)
    return Next::more;
  if (kind == SSL_ERROR_WANT_READ)
    return Next::readable;
  if (kind == SSL_ERROR_WANT_WRITE)
    return Next::writable;
  if (ended_ || kind == SSL_ERROR_ZERO_RETURN) {
    ERR_clear_error();
    return Next::ended;
  }
  why_ = error_ != 0 ? std::strerror(error_) : take_tls_reason();
  ERR_clear_error();
  return Next::broken;
}

TlsSession::Next TlsSession::shake_hands() {
  ERR_clear_error();
  return outcome(SSL_do_handshake(ssl_));
}

TlsSession::Moved TlsSession::read(std::span<std::byte> into) {
  ERR_clear_error();
  std::size_t bytes = 0;
  const int result = SSL_read_ex(ssl_, into.data(), into.size(), &bytes);
  return {bytes, outcome(result)};
}

TlsSession::Moved TlsSession::write(std::span<const std::byte> from) {
  ERR_clear_error();
  Next next = Next::more;
  if (encrypted_ == 0)
    next = encrypt(from.first(std::min(from.size(), kTlsWriteBytes)));
  if (next == Next::more)
    next = send_records();
  return {next == Next::more ? std::exchange(encrypted_, 0) : 0, next};
}

TlsSession::Next TlsSession::encrypt(std::span<const std::byte> from) {
  gathering_ = true;
  Next next = Next::more;
  while (next == Next::more && encrypted_ < from.size()) {
    const auto rest = from.subspan(encrypted_);
    std::size_t bytes = 0;
    const int result = SSL_write_ex(ssl_, rest.data(), rest.size(), &bytes);
    next = outcome(result);
    encrypted_ += bytes;
    bytes_under_key_ += bytes;
    if (next == Next::more && bytes_under_key_ >= key_bytes_) {
      bytes_under_key_ = 0;
      SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED); // sent with the next
    }
  }
  gathering_ = false;
  return next;
}

TlsSession::Next TlsSession::send_records() {
  while (sent_ < records_.size()) {
    const ssize_t bytes
      = ::send(socket_, records_.data() + sent_, records_.size() - sent_,
               MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
      return Next::writable;
    if (bytes < 0) {
      error_ = errno;
      why_ = std::strerror(error_);
      return Next::broken;
    }
    sent_ += static_cast<std::size_t>(bytes);
  }
  records_.clear();
  sent_ = 0;
  return Next::more;
}

} // namespace troupe::net
