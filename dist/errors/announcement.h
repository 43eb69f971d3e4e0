// Announces errors to the launcher of this host, so that an error raised by several ranks is shown once
// (dist/rendezvous/launch/error_once.h). A rank sends the text before it throws, hence before it can print it, to a
// socket whose name is in its environment.
#pragma once

#include <brigade/dist/errors/verdict.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::dist {

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
