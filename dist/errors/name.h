// A name that ranks compare as a number and people read as text: of a module, a hook, a purpose, a source file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace brigade::dist {

// The same on every rank for the same text; 0 only for "".
uint64_t hash_of_text(std::string_view text) noexcept;

// As cheap to copy as a pointer. Each text is kept once, until the process ends: use Name for a bounded number of
// names, not for texts that change with every step. Thread-safe.
class Name {
 public:
  Name() noexcept = default;  // ""
  explicit Name(std::string_view text);
  // A name that another rank sent: `text` may be truncated, `hash` is that of the whole text.
  Name(std::string_view text, uint64_t hash);

  const std::string& text() const noexcept;
  // The same on every rank for the same text; 0 for "".
  uint64_t hash() const noexcept { return entry_ ? entry_->hash : 0; }
  bool empty() const noexcept { return !entry_; }
  bool operator==(const Name& other) const noexcept { return hash() == other.hash(); }

  struct Entry {
    uint64_t hash;
    std::string text;
  };

 private:
  const Entry* entry_ = nullptr;
};

}  // namespace brigade::dist
