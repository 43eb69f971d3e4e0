// How a launcher on this host learns which errors its ranks raise, so that it can show an error
// that several of them raise once (dist/rendezvous/launch/error_once.h). A rank sends the text before
// it throws, so before it can print it; to a socket whose name stands in its environment.
#pragma once

#include <brigade/dist/errors/verdict.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::dist {

// In a rank: tells the launcher, where there is one that listens. Never fails: at worst a text is
// shown twice.
// Called by every error that carries verdicts, when it is made.
void announce(const std::string& message, const std::vector<Verdict>& verdicts) noexcept;

// In the launcher.
class AnnouncementSocket {
 public:
  AnnouncementSocket();  // where no socket can be had, nothing is announced
  ~AnnouncementSocket();
  AnnouncementSocket(const AnnouncementSocket&) = delete;
  AnnouncementSocket& operator=(const AnnouncementSocket&) = delete;

  // Becomes readable when an announcement has come; -1: there is none.
  int fd() const noexcept { return fd_; }
  // What a rank needs in its environment: the variable BRIGADE_ANNOUNCE_TO and this value.
  std::string address_for(int rank) const;
  // Calls back for each announcement that has come: the rank, a key that is the same for the same
  // verdicts, the text.
  void receive(const std::function<void(int rank, const std::string& key, const std::string& text)>& take) const;

 private:
  int fd_ = -1;
  std::string name_;
};

}  // namespace brigade::dist
