// What a failing rank leaves for the launcher of its host: a file, and an announcement.
#pragma once

#include <brigade/dist/errors/verdict.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace brigade::dist {

// --- The error file, which a failing rank leaves for the launcher of its host: when it failed, and whether the error
// is its own or the consequence of what another rank did. The order in which processes end is a poor guide: the victims
// of a rank often end before it does.

struct ErrorRecord {
  int64_t time_ns = 0;          // std::chrono::steady_clock, which the processes of a host share
  bool consequence = false;     // of what a peer did
  std::vector<int> because_of;  // these ranks, if known
  std::string clock;            // date and time in UTC
  std::string text;
};

// Called in a rank: writes the file named by BRIGADE_ERROR_FILE, whole or not at all; does nothing
// without that variable. Every error that carries verdicts calls it; a terminate handler writes
// uncaught exceptions. The first error stays, unless it is the consequence of another rank's error
// and one of this rank's own follows. Never fails.
void leave_error_file(const std::string& text, const std::vector<Verdict>& verdicts) noexcept;

// The same for an error without verdicts that is the consequence of what these ranks did (global
// numbers; empty: unknown).
void leave_consequence(const std::string& text, const std::vector<int>& because_of) noexcept;

// Called in the launcher: nullopt if there is no such file, or none that a rank has written.
std::optional<ErrorRecord> read_error_file(const std::string& path);

// --- Announces errors to the launcher of this host, so that an error raised by several ranks is shown once
// (dist/rendezvous/launch/error_once.h). A rank sends the text before it throws, hence before it can print it, to a
// socket whose name is in its environment.

// Called in a rank: sends the error to the launcher, if one listens. Never fails: at worst a text
// is shown twice. Every error that carries verdicts calls it when it is constructed.
void announce(const std::string& message, const std::vector<Verdict>& verdicts) noexcept;

// The launcher's end of the socket.
class AnnouncementSocket {
 public:
  AnnouncementSocket();  // if no socket can be made, nothing is announced
  ~AnnouncementSocket();
  AnnouncementSocket(const AnnouncementSocket&) = delete;
  AnnouncementSocket& operator=(const AnnouncementSocket&) = delete;

  // Becomes readable when an announcement has come; -1: there is no socket.
  int fd() const noexcept { return fd_; }
  // The value of BRIGADE_ANNOUNCE_TO that a rank needs in its environment.
  std::string address_for(int rank) const;
  // Calls back for each announcement that has come: the rank, a key that is the same for the same
  // verdicts, the text.
  void receive(const std::function<void(int rank, const std::string& key, const std::string& text)>& take) const;

 private:
  int fd_ = -1;
  std::string name_;
};

}  // namespace brigade::dist
