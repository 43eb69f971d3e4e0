// Reads the ranks' pipes, splits the data into lines, and writes these with their prefix.
#include <brigade/dist/rendezvous/launch/output.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <unistd.h>

namespace brigade::dist {
namespace {

constexpr size_t kLastLines = 20;
// Longer lines are shown in pieces of this length; error messages are much shorter.
constexpr size_t kLongestLine = size_t{64} * 1024;
constexpr size_t kReadAtOnce = 8192;
// Limits the reads per turn, so that a rank that writes constantly does not starve signals and other ranks.
constexpr int kReadsInTurn = 16;
// The capacity of a pipe, unless an administrator has raised it; further data comes from daemons.
constexpr int kReadsAtEnd = (1 << 20) / kReadAtOnce;

}  // namespace

void Output::receive() {
  socket_.receive(
      [this](int rank, const std::string& key, const std::string& text) { errors_.announce(rank, key, text); });
}

void Output::drain(RankOutput& rank, Stream& stream) {
  for (int reads = 0; reads < kReadsInTurn && !waits(stream) && read_some(rank, stream);)
    ++reads;
}

void Output::finish(RankOutput& rank) {
  for (Stream* stream : {&rank.out, &rank.err}) {
    for (int reads = 0; reads < kReadsAtEnd && stream->fd >= 0 && read_some(rank, *stream);)
      ++reads;
    if (stream->fd >= 0) end(rank, *stream);
  }
}

// Reads once. Returns false when there was no data; closes the stream at its end.
bool Output::read_some(RankOutput& rank, Stream& stream) {
  char bytes[kReadAtOnce];
  const ssize_t got = read(stream.fd, bytes, sizeof bytes);
  if (got > 0) {
    stream.partial.append(bytes, static_cast<size_t>(got));
    take_lines(rank, stream, false);
    return true;
  }
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
  end(rank, stream);
  return false;
}

void Output::tell(const std::string& lines) {
  kept(STDERR_FILENO).append(lines);
  write();
}

void Output::add_to(std::vector<pollfd>& entries) const {
  for (const int target : {STDOUT_FILENO, STDERR_FILENO}) {
    if (!kept(target).empty()) entries.push_back({target, POLLOUT, 0});
  }
}

void Output::write() {
  for (const int target : {STDOUT_FILENO, STDERR_FILENO}) {
    std::string& bytes = kept(target);
    size_t done = 0;
    while (done < bytes.size()) {
      // A writable pipe accepts PIPE_BUF bytes without blocking; a file accepts any amount.
      pollfd room{target, POLLOUT, 0};
      if (poll(&room, 1, 0) <= 0) break;
      const ssize_t wrote = ::write(target, bytes.data() + done, std::min<size_t>(bytes.size() - done, PIPE_BUF));
      if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) break;
      if (wrote < 0 && write_error_ == 0) write_error_ = errno;
      done = wrote < 0 ? bytes.size() : done + static_cast<size_t>(wrote);
    }
    bytes.erase(0, done);
  }
}

void Output::give_up() {
  if (waits() && write_error_ == 0) write_error_ = EAGAIN;
  for (std::string& bytes : kept_)
    bytes.clear();
}

void Output::end(RankOutput& rank, Stream& stream) {
  take_lines(rank, stream, true);
  close(stream.fd);
  stream.fd = -1;
}

void Output::take_lines(RankOutput& rank, Stream& stream, bool at_end) {
  // A rank announces an error before it prints it, so all errors that these lines can contain are known now.
  receive();
  const bool is_error = &stream == &rank.err;
  size_t begin = 0;
  while (begin < stream.partial.size()) {
    size_t end = stream.partial.find('\n', begin);
    // Without prefixes, a progress bar, which has no newline, is shown at once.
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
  write();
}

void Output::show(RankOutput& rank, const Stream& stream, const ErrorOnce::Lines& lines, const char* newline) {
  const std::string head = prefix_ ? fmt::format("[rank {}] ", rank.rank) : "";
  for (const std::string& line : lines.shown)
    kept(stream.target).append(head).append(line).append(newline);
  for (const std::string& line : lines.brief) {
    if (line.empty()) continue;
    rank.last_lines.push_back(line);
    if (rank.last_lines.size() > kLastLines) rank.last_lines.pop_front();
  }
}

}  // namespace brigade::dist
