// The table of all names.
#include <brigade/dist/errors/name.h>

#include <brigade/core/fnv.h>

#include <functional>
#include <mutex>
#include <unordered_map>

namespace brigade::dist {
namespace {

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
};

struct Table {
  std::mutex mutex;
  std::unordered_map<std::string, Name::Entry, Hash, std::equal_to<>> entries;  // nodes have stable addresses
  std::unordered_map<uint64_t, Name::Entry> cut;                                // names whose text is truncated
};

// Never destroyed: static objects have names, and could outlive the table.
Table& table() {
  static Table* const one = new Table;
  return *one;
}

}  // namespace

uint64_t hash_of_text(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const uint64_t hash = fnv(text);
  return hash == 0 ? 1 : hash;
}

Name::Name(std::string_view text) {
  if (text.empty()) return;
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  auto found = all.entries.find(text);
  if (found == all.entries.end()) found = all.entries.emplace(text, Entry{hash_of_text(text), std::string(text)}).first;
  entry_ = &found->second;
}

Name::Name(std::string_view text, uint64_t hash) {
  if (hash == 0) return;
  if (hash_of_text(text) == hash) {
    *this = Name(text);
    return;
  }
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  entry_ = &all.cut.try_emplace(hash, Entry{hash, std::string(text)}).first->second;
}

const std::string& Name::text() const noexcept {
  static const std::string none;
  return entry_ ? entry_->text : none;
}

}  // namespace brigade::dist
