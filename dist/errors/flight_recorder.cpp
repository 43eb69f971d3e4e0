// Keeps the latest collectives, formats them, and writes them to the rank's file.
#include <brigade/dist/errors/flight_recorder.h>

#include <brigade/core/clock.h>
#include <brigade/core/fnv.h>
#include <brigade/dist/errors/json.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace brigade::dist {
namespace {

std::string file_name(const RecordedGroup& group) {
  if (group.global_ranks.empty()) return fmt::format("rank-{}.json", group.rank);
  std::string members = fmt::format("{}", fmt::join(group.global_ranks, "-"));
  constexpr size_t kLongest = 100;  // a file's name has 255 bytes at most
  if (members.size() > kLongest) members = fmt::format("{}-{:x}", members.substr(0, kLongest), fnv(members));
  std::string identity = group.identity;
  if (identity.size() > kLongest) identity = fmt::format("{}-{:x}", identity.substr(0, kLongest), fnv(identity));
  return fmt::format("rank-{}-in-{}-group-{}.json", group.global_ranks[static_cast<size_t>(group.rank)], members,
                     identity);
}

}  // namespace

uint64_t FlightRecorder::begin(CollectiveInfo info) {
  const std::lock_guard lock(mutex_);
  info.sequence = next_++;
  info.posted = now_ns();
  entries_.push_back(std::move(info));
  if (entries_.size() > kEntries) entries_.pop_front();
  return entries_.back().sequence;
}

void FlightRecorder::finish(uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  if (entries_.empty() || sequence < entries_.front().sequence) return;
  entries_[static_cast<size_t>(sequence - entries_.front().sequence)].finished = now_ns();
}

std::vector<CollectiveInfo> FlightRecorder::entries() const {
  const std::lock_guard lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

void FlightRecorder::write(const RecordedGroup& group, const std::string& reason) const noexcept {
  const char* folder = std::getenv("BRIGADE_FLIGHT_RECORDER");
  if (!folder || !*folder) return;
  try {
    std::filesystem::create_directories(folder);
    std::string text = fmt::format(
        "{{\"rank\": {}, \"world_size\": {}, \"global_ranks\": [{}], \"group\": {}, \"backend\": {}, \"reason\": {}, "
        "\"entries\": [",
        group.rank, group.size, fmt::join(group.global_ranks, ", "), json_string(group.identity),
        json_string(group.backend), json_string(reason));
    bool first = true;
    for (const CollectiveInfo& info : entries()) {
      text += fmt::format(
          "{}\n  {{\"sequence\": {}, \"kind\": {}, \"op\": {}, \"dtype\": {}, \"count\": {}, \"root\": {}, "
          "\"description\": {}, \"iteration\": {}, \"where\": {}, \"posted_ns\": {}, \"finished_ns\": {}}}",
          first ? "" : ",", info.sequence, json_string(name(info.kind)), json_string(op_in_words(info)),
          json_string(dtype_in_words(info)), info.count, info.root, json_string(describe(info)), info.iteration,
          json_string(to_string(info.where)), info.posted, info.finished);
      first = false;
    }
    std::ofstream(fmt::format("{}/{}", folder, file_name(group))) << text << "\n]}\n";
  } catch (const std::exception&) {
    // The error that led here matters more.
  }
}

}  // namespace brigade::dist
