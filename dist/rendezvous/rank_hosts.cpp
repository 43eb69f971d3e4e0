// Each rank publishes its boot id and namespaces, and groups the ranks by equal values.
#include <brigade/dist/rendezvous/rendezvous.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>

#include <unistd.h>

namespace brigade::dist {

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::string identity = boot;
  for (const char* kind : {"pid", "net", "user"}) {
    std::array<char, 256> space{};
    const ssize_t length = readlink(fmt::format("/proc/self/ns/{}", kind).c_str(), space.data(), space.size() - 1);
    identity += "/" + std::string(space.data(), length > 0 ? static_cast<size_t>(length) : 0);
  }
  const char* given = std::getenv("BRIGADE_HOST_ID");
  if (given && *given) {
    const std::string word = given;
    const bool plain = std::all_of(word.begin(), word.end(),
                                   [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
    if (!plain || word.size() > 64)
      throw DistError("BRIGADE_HOST_ID must be at most 64 letters, digits, dots, dashes or underscores, got '{}'",
                      word);
    identity += "/" + word;
  }
  return identity;
}

bool HostLayout::even() const noexcept {
  return std::all_of(hosts.begin(), hosts.end(), [&](const auto& ranks) { return ranks.size() == hosts[0].size(); });
}

size_t HostLayout::most_ranks() const noexcept {
  size_t most = 0;
  for (const auto& ranks : hosts)
    most = std::max(most, ranks.size());
  return most;
}

HostLayout exchange_hosts(Store& store, int rank, int size, std::chrono::milliseconds timeout,
                          const std::string& prefix, const RankNames& names, std::vector<std::string>* words) {
  // Another exchange may follow under this prefix while slower ranks still read this one.
  const char* const kind = words ? "asks" : "host";
  store.set(fmt::format("{}/{}/{}", prefix, kind, rank), host_identity() + (words ? "\n" + words->front() : ""));
  if (words) words->clear();
  HostLayout layout;
  std::map<std::string, size_t> numbers;
  AwaitedRanks others(store, prefix, rank, size, timeout, names);
  for (int r = 0; r < size; ++r) {
    const std::string said = others.get(fmt::format("{}/{}/{}", prefix, kind, r), r);
    const std::string identity = said.substr(0, said.find('\n'));
    if (words) words->push_back(said.substr(std::min(said.size(), identity.size() + 1)));
    const size_t host = numbers.emplace(identity, layout.hosts.size()).first->second;
    if (host == layout.hosts.size()) layout.hosts.emplace_back();
    if (r == rank) {
      layout.host = static_cast<int>(host);
      layout.local = static_cast<int>(layout.hosts[host].size());
    }
    layout.hosts[host].push_back(r);
  }
  return layout;
}

}  // namespace brigade::dist
