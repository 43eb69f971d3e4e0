// Reads the ranks' pipes, cuts them into lines, and prints those with their prefix.
#include <brigade/dist/meeting/launch/output.h>

#include <fmt/format.h>

#include <cerrno>

#include <unistd.h>

namespace brigade::dist {

namespace {

constexpr size_t kLastLines = 20;
// Longer lines are shown in pieces of this length; a verdict is much shorter.
constexpr size_t kLongestLine = size_t{64} * 1024;

}  // namespace

void Output::receive() {
  socket_.receive(
      [this](int rank, const std::string& key, const std::string& text) { errors_.announce(rank, key, text); });
}

bool Output::drain(RankOutput& rank, Stream& stream) {
  char bytes[8192];
  while (true) {
    const ssize_t got = read(stream.fd, bytes, sizeof bytes);
    if (got > 0) {
      stream.partial.append(bytes, static_cast<size_t>(got));
      take_lines(rank, stream, false);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    end(rank, stream);
    return false;
  }
}

void Output::finish(RankOutput& rank) {
  for (Stream* stream : {&rank.out, &rank.err}) {
    if (stream->fd >= 0) end(rank, *stream);
  }
}

void Output::end(RankOutput& rank, Stream& stream) {
  take_lines(rank, stream, true);
  close(stream.fd);
  stream.fd = -1;
}

void Output::take_lines(RankOutput& rank, Stream& stream, bool at_end) {
  // A rank announces an error before it prints it: what these lines can contain is known now.
  receive();
  const bool is_error = &stream == &rank.err;
  size_t begin = 0;
  while (begin < stream.partial.size()) {
    size_t end = stream.partial.find('\n', begin);
    // Without prefixes a progress bar, which ends in no newline, passes at once.
    const bool whole = end != std::string::npos;
    const bool wait = prefix_ || (is_error && errors_.expects(rank.rank));
    const bool too_long = stream.partial.size() - begin >= kLongestLine;
    if (!whole && wait && !at_end && !too_long) break;
    if (!whole) end = stream.partial.size();
    const std::string line = stream.partial.substr(begin, end - begin);
    const ErrorOnce::Lines lines = is_error ? errors_.line(rank.rank, line) : ErrorOnce::Lines{{line}, {}};
    show(rank, stream, lines, whole || wait ? "\n" : "");
    begin = end + (whole ? 1 : 0);
  }
  stream.partial.erase(0, begin);
  if (is_error && at_end) show(rank, stream, errors_.end(rank.rank), "\n");
  note(std::fflush(stream.target) == 0);
}

void Output::note(bool written) {
  if (!written && write_error_ == 0) write_error_ = errno;
}

void Output::show(RankOutput& rank, const Stream& stream, const ErrorOnce::Lines& lines, const char* newline) {
  const std::string head = prefix_ ? fmt::format("[rank {}] ", rank.rank) : "";
  for (const std::string& line : lines.shown)
    note(std::fprintf(stream.target, "%s%s%s", head.c_str(), line.c_str(), newline) >= 0);
  for (const std::string& line : lines.brief) {
    if (line.empty()) continue;
    rank.last_lines.push_back(line);
    if (rank.last_lines.size() > kLastLines) rank.last_lines.pop_front();
  }
}

}  // namespace brigade::dist
