// Sending the text of an error to the launcher of this host, over its socket.
#include <brigade/dist/errors/error_file.h>

#include <brigade/dist/errors/rank_names.h>

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace brigade::dist {
namespace {

// Names in the Linux abstract socket namespace: there is no file, and the name disappears with the socket.
sockaddr_un abstract(const std::string& name, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t taken = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), taken);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + taken);
  return address;
}

// Verdicts about the same fault have the same key, even if each rank adds its own observations (how long it waited).
// Ranks of different subgroups have the same numbers: the global ranks in the message of the verdict, or in the legend at
// the end, distinguish the subgroups. The rest of the text is not used, since it names the rank that waits.
std::string key_of(const std::string& message, const std::vector<Verdict>& verdicts) {
  if (verdicts.empty()) return message;
  std::string key;
  for (const Verdict& verdict : verdicts) {
    key += fmt::format("{} {} {} {} {}:{} {};", verdict.kind, verdict.iteration, list_of(verdict.ranks),
                       name(verdict.cause.kind), verdict.cause.place.file, verdict.cause.place.line, verdict.cause.op);
    for (const ParameterVerdict& parameter : verdict.parameters)
      key += parameter.name + ",";
    key += list_of(globals_in(verdict.message));
  }
  const size_t legend = message.rfind(kLegend);
  if (legend != message.npos) key += list_of(globals_in(std::string_view(message).substr(legend)));
  return key;
}

}  // namespace

void announce(const std::string& message, const std::vector<Verdict>& verdicts) noexcept try {
  leave_error_file(message, verdicts);
  const char* const given = std::getenv("BRIGADE_ANNOUNCE_TO");
  if (!given) return;
  const std::string to = given;  // NAME/RANK
  const size_t slash = to.find('/');
  if (slash == std::string::npos) return;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  // The launcher normally reads at once; if it hangs, this rank must not.
  const timeval limit{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  socklen_t length = 0;
  const sockaddr_un address = abstract(to.substr(0, slash), length);
  const std::string parts[] = {to.substr(slash + 1), key_of(message, verdicts), message};
  std::string datagram;
  for (const std::string& part : parts)
    datagram += part + '\0';
  sendto(fd, datagram.data(), datagram.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length);
  close(fd);
} catch (...) {
}

AnnouncementSocket::AnnouncementSocket() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (fd_ < 0) return;
  // An address without a name: the kernel picks a free one.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof address;
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)) == 0 &&
      getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
      length > offsetof(sockaddr_un, sun_path) + 1) {
    name_.assign(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
    return;
  }
  close(fd_);
  fd_ = -1;
}

AnnouncementSocket::~AnnouncementSocket() {
  if (fd_ >= 0) close(fd_);
}

std::string AnnouncementSocket::address_for(int rank) const { return fmt::format("{}/{}", name_, rank); }

void AnnouncementSocket::receive(
    const std::function<void(int rank, const std::string& key, const std::string& text)>& take) const {
  if (fd_ < 0) return;
  std::string datagram(size_t{256} * 1024, '\0');
  while (true) {
    const ssize_t got = ::recv(fd_, datagram.data(), datagram.size(), 0);
    if (got < 0) return;
    const std::string_view all(datagram.data(), static_cast<size_t>(got));
    const size_t first = all.find('\0');
    const size_t second = first == all.npos ? first : all.find('\0', first + 1);
    if (second == all.npos || all.back() != '\0') continue;
    take(std::atoi(all.data()), std::string(all.substr(first + 1, second - first - 1)),
         std::string(all.substr(second + 1, all.size() - second - 2)));
  }
}

}  // namespace brigade::dist
