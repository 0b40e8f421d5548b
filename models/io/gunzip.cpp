#include "models/io/gunzip.hpp"

#include "config/base/error.hpp"

#include <zlib.h>

#include <cstddef>
#include <vector>

namespace troupe::models {

namespace {

constexpr std::size_t text_part = std::size_t{1} << 20;
/// zlib counts what it is given in 32 bits.
constexpr std::size_t packed_part = std::size_t{1} << 30;
constexpr int window_of_gzip = 15 + 16; // largest window; 16: gzip's header

[[noreturn]] void no_whole_gzip(const std::string& file,
                                const std::string& got) {
  throw ConfigError(
    {.place = {file, 0},
     .path = "",
     .expected = "a whole gzip file",
     .got = got,
     .hint = "another copy; `gunzip -t '" + file + "'` checks one"});
}

class Inflater {
public:
  Inflater(std::string_view packed, const std::string& file)
    : packed_(packed),
      file_(file),
      text_(text_part) {
    TROUPE_CHECK(inflateInit2(&stream_, window_of_gzip) == Z_OK,
                 "zlib does not start");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    inflateEnd(&stream_);
  }

  bool has_more() const {
    return stream_.avail_in > 0 || !packed_.empty();
  }
  /// Reads one member.
  void read_member(const std::function<void(std::string_view)>& write) {
    inflateReset(&stream_);
    for (int state = Z_OK; state != Z_STREAM_END;) {
      if (!has_more())
        no_whole_gzip(file_, "one that is cut off");
      refill();
      stream_.next_out = reinterpret_cast<Bytef*>(text_.data());
      stream_.avail_out = static_cast<uInt>(text_.size());
      state = inflate(&stream_, Z_NO_FLUSH);
      const bool goes_on
        = state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR;
      if (!goes_on)
        no_whole_gzip(file_, stream_.msg == nullptr
                               ? "one that is damaged"
                               : std::string("one that is damaged (")
                                   + stream_.msg + ")");
      write({text_.data(), text_.size() - stream_.avail_out});
    }
  }

private:
  void refill() {
    if (stream_.avail_in > 0)
      return;
    const auto part = packed_.substr(0, packed_part);
    packed_.remove_prefix(part.size());
    // zlib's interface is older than const
    stream_.next_in
      = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(part.data()));
    stream_.avail_in = static_cast<uInt>(part.size());
  }

  z_stream stream_{};
  std::string_view packed_; ///< what zlib has not been given yet
  const std::string& file_;
  std::vector<char> text_;
};

} // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1F\x8B");
}

void gunzip(std::string_view packed, const std::string& file,
            const std::function<void(std::string_view)>& write) {
  Inflater inflater(packed, file);
  do {
    inflater.read_member(write);
  } while (inflater.has_more());
}

} // namespace troupe::models
