// Writes, reads and compares what the two sides of a store say of their job.
#include <brigade/dist/meeting/store/greeting.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace brigade::dist {

namespace {

// Names come from environment variables, and are printed: at most so long, and without control
// characters.
constexpr size_t kMostNameBytes = 256;

std::string plain(std::string_view name) {
  std::string text(name.substr(0, kMostNameBytes));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

std::string greeting_text(const StoreJob& job) {
  return std::to_string(job.world_size) + '\0' + plain(job.run) + '\0' + plain(job.who);
}

std::optional<StoreJob> read_greeting(std::string_view text) {
  const size_t first = text.find('\0');
  const size_t second = first == std::string_view::npos ? first : text.find('\0', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  StoreJob job;
  const char* end = text.data() + first;
  const auto [rest, error] = std::from_chars(text.data(), end, job.world_size);
  job.run = text.substr(first + 1, second - first - 1);
  job.who = text.substr(second + 1);
  const bool right = error == std::errc() && rest == end && job.world_size >= 0 && job.run == plain(job.run) &&
                     job.who == plain(job.who);
  return right ? std::optional(job) : std::nullopt;
}

std::string why_refused(const StoreJob& own, const StoreJob& other) {
  if (plain(own.run) != other.run)
    return fmt::format(
        "it belongs to another run than {}: two jobs use the same port; give each its own with --master-port or "
        "MASTER_PORT",
        other.run.empty() ? "this one, which has no name" : "'" + other.run + "'");
  if (own.world_size > 0 && other.world_size > 0 && own.world_size != other.world_size)
    return fmt::format(
        "its job has {} ranks, and this one {}: two jobs use the same port, or WORLD_SIZE differs between the ranks",
        own.world_size, other.world_size);
  return "";
}

}  // namespace brigade::dist
