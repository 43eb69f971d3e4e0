// Makes and maps the anonymous files, keeps those that were freed, and maps those of peers on use.
#include <brigade/dist/groups/shm/arena.h>

#include <brigade/core/error.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace brigade::dist::shm {

namespace {

// What every segment has, and no other file: only memfds have seals at all.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool is_sealed(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);  // the kernel may have added others
  return seals >= 0 && (seals & kSeals) == kSeals;
}

// Opens a peer's segment, -1 with `why` when it is none. Where it lies came through the store,
// which takes strangers too: nothing is opened for writing before its kind, owner, size and seals
// are known.
int open_segment(const std::string& path, size_t bytes, std::string& why) {
  const int place = open(path.c_str(), O_PATH | O_CLOEXEC);
  // The file that was looked at, whatever the peer's descriptor names by now.
  const auto open_it = [place](int how) {
    return open(fmt::format("/proc/self/fd/{}", place).c_str(), how | O_CLOEXEC);
  };
  struct stat entry {};
  int fd = -1;
  if (place < 0 || fstat(place, &entry) != 0) {
    why = std::strerror(errno);
  } else if (!S_ISREG(entry.st_mode)) {
    why = "it is not shared memory";
  } else if (entry.st_uid != geteuid()) {
    why = fmt::format("it belongs to user {}, this process runs as user {}", entry.st_uid, geteuid());
  } else if (entry.st_size != static_cast<off_t>(bytes)) {
    why = fmt::format("expected {} bytes, it has {}", bytes, entry.st_size);
  } else if (const int readable = open_it(O_RDONLY); readable < 0) {
    why = std::strerror(errno);
  } else {
    if (!is_sealed(readable)) {
      why = "it is not sealed as a rank's shared memory is";
    } else if (fd = open_it(O_RDWR); fd < 0) {
      why = std::strerror(errno);
    }
    close(readable);
  }
  if (place >= 0) close(place);
  return fd;
}

}  // namespace

Mapping::Mapping(size_t bytes) : bytes_(bytes) {
  fd_ = memfd_create("brigade", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const bool sized = fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes)) == 0 && fcntl(fd_, F_ADD_SEALS, kSeals) == 0;
  // Populated at once: a page fault inside a collective would stall every rank.
  void* data = sized ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, 0) : MAP_FAILED;
  if (data == MAP_FAILED) {
    const std::string why = std::strerror(errno);
    if (fd_ >= 0) close(fd_);
    throw OutOfMemoryError("cannot make {} bytes of shared memory: {}", bytes, why);
  }
  data_ = data;
}

Mapping::Mapping(int pid, int fd, size_t bytes) : bytes_(bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  std::string why;
  fd_ = open_segment(path, bytes, why);
  void* data = fd_ >= 0 ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, 0) : MAP_FAILED;
  if (data == MAP_FAILED) {
    if (fd_ >= 0) why = std::strerror(errno);
    if (fd_ >= 0) close(fd_);
    throw DistError(
        "shm: cannot map the memory of process {} ({}: {}); the ranks of an shm group must run on one host under one "
        "user. Use the gloo backend otherwise",
        pid, path, why);
  }
  data_ = data;
}

Mapping::~Mapping() {
  if (data_) munmap(data_, bytes_);
  if (fd_ >= 0) close(fd_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      fd_(std::exchange(other.fd_, -1)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

Arena::~Arena() {
  for (const auto& [segment, mapping] : mappings_)
    own_.segments[segment].fd.store(-1, std::memory_order_release);
}

Arena::Piece Arena::allocate(size_t bytes) {
  constexpr size_t kPage = 4096;
  if (bytes > (size_t{1} << 47))
    throw OutOfMemoryError("cannot make {} bytes of shared memory: an address space holds less", bytes);
  bytes = std::max((bytes + kPage - 1) / kPage * kPage, kPage);
  std::lock_guard lock(mutex_);
  const auto kept = free_.find(bytes);
  if (kept != free_.end()) {
    const int32_t segment = kept->second;
    free_.erase(kept);
    return {mappings_.at(segment).data(), segment};
  }
  for (int32_t segment = 0; segment < kAllocations; ++segment) {
    if (mappings_.contains(segment)) continue;
    Mapping mapping(bytes);
    Segment& entry = own_.segments[segment];
    entry.bytes = bytes;
    entry.generation.fetch_add(1, std::memory_order_relaxed);
    entry.fd.store(mapping.fd(), std::memory_order_release);
    void* data = mapping.data();
    mappings_.emplace(segment, std::move(mapping));
    return {data, segment};
  }
  throw DistError("shm: all {} shared segments of this rank are in use", kAllocations);
}

void Arena::free(int32_t segment) {
  std::lock_guard lock(mutex_);
  const size_t bytes = mappings_.at(segment).bytes();
  if (free_.count(bytes) < kKept) {
    free_.emplace(bytes, segment);
    return;
  }
  own_.segments[segment].fd.store(-1, std::memory_order_release);
  mappings_.erase(segment);
}

int32_t Arena::find(const void* address, uint64_t& offset) const {
  std::lock_guard lock(mutex_);
  for (const auto& [segment, mapping] : mappings_) {
    const char* base = static_cast<const char*>(mapping.data());
    const char* at = static_cast<const char*>(address);
    if (at >= base && at < base + mapping.bytes()) {
      offset = static_cast<uint64_t>(at - base);
      return segment;
    }
  }
  return -1;
}

void* PeerSegments::resolve(const RankBlock& peer, int rank, const DataPlace& place) {
  const auto key = std::make_pair(rank, place.allocation);
  auto found = known_.find(key);
  if (found == known_.end() || found->second.generation != place.generation) {
    // Drop what the peers have given back meanwhile, then map the new one.
    if (found != known_.end()) known_.erase(found);
    const Segment& entry = peer.segments[place.allocation];
    const int fd = entry.fd.load(std::memory_order_acquire);
    Mapping mapping(peer.pid.load(std::memory_order_relaxed), fd, entry.bytes);
    found = known_.emplace(key, Known{place.generation, std::move(mapping)}).first;
  }
  return static_cast<char*>(found->second.mapping.data()) + place.offset;
}

}  // namespace brigade::dist::shm
