// Makes and checks anonymous files, and maps ranges of them.
#include <brigade/dist/groups/shm/shared_file.h>

#include <brigade/core/error.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace brigade::dist::shm {
namespace {

// The seals of every SharedFile; no other kind of file has them, since only memfds have seals.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Why a received descriptor is not a rank's memory; "" when it is.
std::string fault_of(int fd, uint64_t bytes) {
  struct stat entry {};
  if (fstat(fd, &entry) != 0) return std::strerror(errno);
  if (!S_ISREG(entry.st_mode)) return "it is not shared memory";
  if (entry.st_uid != geteuid())
    return fmt::format("it belongs to user {}, this process runs as user {}", entry.st_uid, geteuid());
  if (static_cast<uint64_t>(entry.st_size) != bytes)
    return fmt::format("expected {} bytes, it has {}", bytes, entry.st_size);
  const int seals = fcntl(fd, F_GET_SEALS);  // the kernel may have added others
  if (seals < 0 || (seals & kSeals) != kSeals) return "it is not sealed as a rank's shared memory is";
  return "";
}

}  // namespace

SharedFile::SharedFile(uint64_t bytes)
    : descriptor_(memfd_create("brigade", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes_(bytes) {
  if (fd() < 0 || ftruncate(fd(), static_cast<off_t>(bytes)) != 0 || fcntl(fd(), F_ADD_SEALS, kSeals) != 0)
    throw OutOfMemoryError("cannot make {} bytes of shared memory: {}", bytes, std::strerror(errno));
}

SharedFile::SharedFile(Socket descriptor, uint64_t bytes, std::string_view whose)
    : descriptor_(std::move(descriptor)), bytes_(bytes) {
  if (const std::string fault = fault_of(fd(), bytes); !fault.empty())
    throw DistError("shm: cannot take the memory {}: {}", whose, fault);
}

void SharedFile::release(uint64_t offset, uint64_t bytes) const noexcept {
  // If the kernel does not support this, the memory stays until the file is closed everywhere.
  static_cast<void>(fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                              static_cast<off_t>(bytes)));
}

Mapping::Mapping(const SharedFile& file, uint64_t offset, size_t bytes) : bytes_(bytes) {
  if (offset > file.bytes() || bytes > file.bytes() - offset)
    throw DistError("shm: {} bytes at {} lie outside of a shared memory of {} bytes", bytes, offset, file.bytes());
  // Populated eagerly: a page fault inside a collective would stall every rank.
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.fd(), static_cast<off_t>(offset));
  if (data == MAP_FAILED)
    throw OutOfMemoryError("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno));
  data_ = data;
}

Mapping::~Mapping() {
  if (data_) munmap(data_, bytes_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace brigade::dist::shm
