// Where the output of the ranks that a launcher has started goes: whole lines, so that those of two
// ranks never mix within one, and errors that several ranks raise once. Nothing here waits for who
// reads the output: what cannot be written yet is kept, and its ranks are not read further until it
// is.
#pragma once

#include <brigade/dist/errors/announcement.h>
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
  // Takes notice of errors that ranks have announced.
  void receive();
  // Shows what has come through one of the rank's streams, and closes it at its end; nothing while
  // earlier output waits for its reader.
  void drain(RankOutput& rank, Stream& stream);
  // The rank has ended: shows all that has come through its streams, which others may still hold
  // open, and closes them.
  void finish(RankOutput& rank);

  // Words of the launcher's own, whole lines, for standard error.
  void tell(const std::string& lines);

  // Whether output waits for whoever reads this target.
  bool waits(const Stream& stream) const noexcept { return !kept(stream.target).empty(); }
  bool waits() const noexcept { return !kept_[0].empty() || !kept_[1].empty(); }
  // What to poll for, in order to go on with what waits; then write() does so.
  void add_to(std::vector<pollfd>& entries) const;
  void write();
  // Drops what waits.
  void give_up();
  // Why not everything could be written, as errno says it; 0 when it could.
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
