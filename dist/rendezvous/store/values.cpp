// A map from keys to values that counts its bytes, and sums of values.
#include <brigade/dist/rendezvous/store/server.h>

#include <brigade/core/error.h>

#include <charconv>

namespace brigade::dist {

// --- A map from keys to values that counts its bytes.

namespace {

// The approximate overhead of an entry, without its key and value.
constexpr size_t kEntryBytes = 128;

}  // namespace

void StoredValues::set(const std::string& key, std::string value) {
  const auto found = values_.find(key);
  if (found == values_.end() && values_.size() >= limits_.keys)
    throw DistError("store: it is full: it holds {} keys, which is all that it may", values_.size());
  const size_t bytes = kEntryBytes + key.size() + value.size();
  const size_t before = found == values_.end() || found->second.use_count() > 1
                            ? 0
                            : kEntryBytes + key.size() + found->second->size();  // released at once
  if (*bytes_ - before + bytes > limits_.total_bytes)
    throw DistError(
        "store: it is full: {} bytes for '{}' are more than is left of the {} that it may hold; give the other ranks "
        "large data by a broadcast",
        value.size(), key.substr(0, 100), limits_.total_bytes);
  auto text = std::make_unique<std::string>(std::move(value));
  std::string* const raw = text.get();
  // Counted first: whatever happens next, the deleter subtracts it again.
  *bytes_ += bytes;
  text.release();
  std::shared_ptr<const std::string> kept(raw, [counter = bytes_, bytes](const std::string* gone) {
    delete gone;
    *counter -= bytes;
  });
  values_[key] = std::move(kept);
}

int64_t StoredValues::add(const std::string& key, int64_t amount) {
  const int64_t sum = added_to(key, find(key).get(), amount);
  set(key, std::to_string(sum));
  return sum;
}

std::shared_ptr<const std::string> StoredValues::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : found->second;
}

// --- Parses a value strictly as an integer, and adds with overflow checks.

namespace {

// Quotes a value in an error: truncated, because it may be long, and printable, because it may hold any bytes.
std::string quoted(const std::string& text) {
  constexpr size_t kMost = 40;
  std::string shown = text.substr(0, kMost);
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return text.size() > kMost ? "'" + shown + "...'" : "'" + shown + "'";
}

}  // namespace

int64_t added_to(const std::string& key, const std::string* text, int64_t amount) {
  int64_t before = 0;
  if (text) {
    const char* end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, before);
    if (error != std::errc() || rest != end)
      throw DistError(
          "store: add({}, {}) expects a whole number of 64 bits under that key, but its value is {}; use another key "
          "for the count",
          quoted(key), amount, quoted(*text));
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(before, amount, &sum))
    throw DistError("store: add({}, {}) would leave the range of 64 bits: the value is {}", quoted(key), amount,
                    before);
  return sum;
}

}  // namespace brigade::dist
