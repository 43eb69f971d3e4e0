// Writing and reading the error file of a rank: a line of numbers, a line with the date, the text.
#include <brigade/dist/errors/error_file.h>

#include <brigade/core/atomic_file.h>
#include <brigade/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <mutex>
#include <sstream>

namespace brigade::dist {
namespace {

constexpr const char* kFileVariable = "BRIGADE_ERROR_FILE";

std::string time_in_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

// The record of this process, with a lock: errors are made on several threads.
class OwnRecord {
 public:
  void take(const std::string& text, bool consequence, const std::vector<int>& because_of) {
    const char* const path = std::getenv(kFileVariable);
    if (!path) return;
    const std::lock_guard lock(mutex_);
    const bool again = !text_.empty() && text.find(text_) != text.npos;  // the same error in other words
    if (!text_.empty() && (again || !consequence_ || consequence)) return;
    text_ = text.empty() ? "an error without words" : text;
    consequence_ = consequence;
    const int64_t now =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    std::string head = fmt::format("{} {}", now, consequence ? 1 : 0);
    for (const int rank : because_of)
      head += fmt::format(" {}", rank);
    try {
      write_file(path, head + "\n" + time_in_utc() + "\n" + text_);
    } catch (const IoError&) {
      // The launcher then reports what it sees of the rank.
    }
  }

 private:
  std::mutex mutex_;
  bool consequence_ = false;
  std::string text_;
};

OwnRecord& own_record() {
  static auto* const record = new OwnRecord;  // never destroyed: errors come up to the very end
  return *record;
}

std::terminate_handler previous_handler = nullptr;

[[noreturn]] void record_and_terminate() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    own_record().take("std::terminate", false, {});
  } catch (const Diagnosed&) {
    // Written when it was constructed.
  } catch (const PeerError& error) {
    own_record().take(error.what(), true, {});
  } catch (const TimeoutError& error) {
    own_record().take(error.what(), true, {});
  } catch (const std::exception& error) {
    own_record().take(error.what(), false, {});
  } catch (...) {
    own_record().take("an exception that is no std::exception", false, {});
  }
  if (previous_handler) previous_handler();
  std::abort();
}

const bool installed = [] {
  if (std::getenv(kFileVariable)) previous_handler = std::set_terminate(record_and_terminate);
  return true;
}();

}  // namespace

void leave_error_file(const std::string& text, const std::vector<Verdict>& verdicts) noexcept try {
  static_cast<void>(installed);
  const char* const own = std::getenv("RANK");
  if (!own || !std::getenv(kFileVariable)) return;
  // An error for which only other ranks are at fault is a consequence of theirs.
  std::vector<int> others;
  for (const Verdict& verdict : verdicts) {
    if (verdict.severity == Severity::Error) others.insert(others.end(), verdict.ranks.begin(), verdict.ranks.end());
  }
  const bool consequence = !others.empty() && std::find(others.begin(), others.end(), std::atoi(own)) == others.end();
  own_record().take(text, consequence, consequence ? others : std::vector<int>{});
} catch (...) {
}

void leave_consequence(const std::string& text, const std::vector<int>& because_of) noexcept try {
  static_cast<void>(installed);
  own_record().take(text, true, because_of);
} catch (...) {
}

std::optional<ErrorRecord> read_error_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  ErrorRecord record;
  std::string head;
  int consequence = 0;
  if (!std::getline(in, head) || !std::getline(in, record.clock)) return std::nullopt;
  std::istringstream numbers(head);
  if (!(numbers >> record.time_ns >> consequence)) return std::nullopt;
  record.consequence = consequence != 0;
  for (int rank = 0; numbers >> rank;)
    record.because_of.push_back(rank);
  std::ostringstream text;
  text << in.rdbuf();
  record.text = text.str();
  return record;
}

}  // namespace brigade::dist
