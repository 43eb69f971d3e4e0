// Forwards the output of a launcher's ranks as whole lines, so that output of two ranks never mixes within a line, and
// deduplicates the errors that several ranks raise. Writing never blocks: output that cannot be written yet is kept,
// and the ranks are not read further until it is written.
#pragma once

#include <brigade/dist/errors/error_file.h>
#include <brigade/dist/rendezvous/launch/error_once.h>

#include <deque>
#include <string>
#include <vector>

#include <poll.h>

namespace brigade::dist {

// One pipe from a rank, cut into lines.
struct Stream {
  int fd = -1;
  int target = -1;  // STDOUT_FILENO or STDERR_FILENO
  std::string partial;
};

struct RankOutput {
  int rank = 0;
  Stream out, err;
  std::deque<std::string> last_lines;  // on standard error
};

class Output {
 public:
  explicit Output(bool prefix) : prefix_(prefix) {}

  const AnnouncementSocket& socket() const noexcept { return socket_; }
  // Receives the errors that ranks have announced.
  void receive();
  // Shows the data that has arrived on one of the rank's streams, and closes the stream at its end. Does nothing while
  // earlier output is pending.
  void drain(RankOutput& rank, Stream& stream);
  // Call it when the rank has ended: shows all data of its streams, which other processes may still hold open, and
  // closes them.
  void finish(RankOutput& rank);

  // Writes whole lines of the launcher's own to standard error.
  void tell(const std::string& lines);

  // Whether output to the stream's target is pending.
  bool waits(const Stream& stream) const noexcept { return !kept(stream.target).empty(); }
  bool waits() const noexcept { return !kept_[0].empty() || !kept_[1].empty(); }
  // Adds the descriptors to poll for pending output; then call write().
  void add_to(std::vector<pollfd>& entries) const;
  void write();
  // Drops pending output.
  void give_up();
  // An errno that explains why output was lost; 0 when everything was written.
  int write_error() const noexcept { return write_error_; }

 private:
  std::string& kept(int target) noexcept { return kept_[target - 1]; }
  const std::string& kept(int target) const noexcept { return kept_[target - 1]; }
  bool read_some(RankOutput& rank, Stream& stream);
  void end(RankOutput& rank, Stream& stream);
  void take_lines(RankOutput& rank, Stream& stream, bool at_end);
  void show(RankOutput& rank, const Stream& stream, const ErrorOnce::Lines& lines, const char* newline);

  const bool prefix_;
  int write_error_ = 0;
  std::string kept_[2];  // for standard output and standard error
  AnnouncementSocket socket_;
  ErrorOnce errors_;
};

}  // namespace brigade::dist
