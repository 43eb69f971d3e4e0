// A map from keys to values that counts its bytes.
#include <brigade/dist/rendezvous/store/sum.h>
#include <brigade/dist/rendezvous/store/values.h>

#include <brigade/core/error.h>

namespace brigade::dist {

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

}  // namespace brigade::dist
