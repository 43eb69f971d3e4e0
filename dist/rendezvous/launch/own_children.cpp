// Reads the parent of every process in /proc.
#include <brigade/dist/rendezvous/launch/own_children.h>

#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace brigade::dist {

namespace {

// Writes "NUMBER/stat".
void stat_path(const char* number, char (&path)[64]) noexcept {
  size_t length = 0;
  for (; number[length] && length < 40; ++length)
    path[length] = number[length];
  std::memcpy(path + length, "/stat", sizeof "/stat");
}

// "17 (a name) S 4 ...": the name, which may hold parentheses, the state, the parent.
void visit_if_own(int proc, const char* number, pid_t own, void (*visit)(void*, const OwnChild&),
                  void* context) noexcept {
  char path[64];
  stat_path(number, path);
  const int file = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[512];
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return;
  text[got] = '\0';
  char* name = std::strchr(text, '(');
  char* end = std::strrchr(text, ')');
  if (!name || !end || end[1] == '\0' || end[2] == 'Z' || end[2] == 'X') return;
  if (std::strtol(end + 3, nullptr, 10) != own) return;
  *end = '\0';
  visit(context, {static_cast<pid_t>(std::strtol(number, nullptr, 10)), name + 1});
}

}  // namespace

void visit_own_children(void (*visit)(void*, const OwnChild&), void* context) noexcept {
  const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  const pid_t own = getpid();
  alignas(dirent64) char entries[4096];
  for (ssize_t got = 0; (got = getdents64(proc, entries, sizeof entries)) > 0;) {
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') visit_if_own(proc, entry->d_name, own, visit, context);
      at += entry->d_reclen;
    }
  }
  close(proc);
}

}  // namespace brigade::dist
