// Where the output of the ranks that a launcher has started goes: whole lines, so that those of two
// ranks never mix within one, and errors that several ranks raise once.
#pragma once

#include <brigade/dist/diagnosis/announcement.h>
#include <brigade/dist/meeting/launch/error_once.h>

#include <cstdio>
#include <deque>
#include <string>

namespace brigade::dist {

// One pipe from a rank, cut into lines.
struct Stream {
  int fd = -1;
  FILE* target = nullptr;
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
  // Shows what has come through one of the rank's streams; false, and the stream closed, at its
  // end.
  bool drain(RankOutput& rank, Stream& stream);
  // The rank has ended: shows what was held back of its streams, which others may still hold open,
  // and closes them.
  void finish(RankOutput& rank);
  // Why not everything could be written, as errno says it; 0 when it could.
  int write_error() const noexcept { return write_error_; }

 private:
  void end(RankOutput& rank, Stream& stream);
  void take_lines(RankOutput& rank, Stream& stream, bool at_end);
  void show(RankOutput& rank, const Stream& stream, const ErrorOnce::Lines& lines, const char* newline);
  void note(bool written);

  const bool prefix_;
  int write_error_ = 0;
  AnnouncementSocket socket_;
  ErrorOnce errors_;
};

}  // namespace brigade::dist
