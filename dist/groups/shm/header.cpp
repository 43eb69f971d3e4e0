// Headers as collectives in words of the flight recorder, and back.
#include <brigade/dist/groups/shm/header.h>

#include <algorithm>
#include <cstring>

namespace brigade::dist::shm {

void copy_text(std::span<char> target, std::string_view text) noexcept {
  const size_t length = std::min(text.size(), target.size() - 1);
  if (length > 0) std::memcpy(target.data(), text.data(), length);
  target[length] = '\0';
}

void tell(SourceLine& line, const Place& place) noexcept {
  copy_text(line.file, place.file);
  line.line = place.line;
}

Place place_of(const SourceLine& line) { return {line.file, line.line}; }

void tell(Header& header, const CollectiveInfo& info) noexcept {
  copy_text(header.kind, info.kind);
  copy_text(header.op, info.op);
  copy_text(header.dtype, info.dtype);
  header.root = info.root;
  header.count = info.count;
  header.number = info.sequence;
  header.iteration = info.iteration;
  copy_text(header.description, info.description);
  tell(header.where, info.where);
}

CollectiveInfo info_of(const Header& header) {
  CollectiveInfo info;
  info.sequence = header.number;
  info.kind = header.kind;
  info.op = header.op;
  info.dtype = header.dtype;
  info.count = header.count;
  info.root = header.root;
  info.description = header.description;
  info.iteration = header.iteration;
  info.where = place_of(header.where);
  return info;
}

bool same_collective(const Header& a, const Header& b) noexcept {
  return a.count == b.count && a.root == b.root && std::strcmp(a.kind, b.kind) == 0 && std::strcmp(a.op, b.op) == 0 &&
         std::strcmp(a.dtype, b.dtype) == 0 && std::strcmp(a.description, b.description) == 0;
}

}  // namespace brigade::dist::shm
