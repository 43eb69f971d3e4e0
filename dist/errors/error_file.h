// The error file, which a failing rank leaves for the launcher of its host: when it failed, and
// whether the error is its own or the consequence of what another rank did. The order in which
// processes end is a poor guide: the victims of a rank often end before it does.
#pragma once

#include <brigade/dist/errors/verdict.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace brigade::dist {

struct ErrorRecord {
  int64_t time_ns = 0;          // std::chrono::steady_clock, which the processes of a host share
  bool consequence = false;     // of what a peer did
  std::vector<int> because_of;  // these ranks, if known
  std::string clock;            // date and time in UTC
  std::string text;
};

// Called in a rank: writes the file named by BRIGADE_ERROR_FILE, whole or not at all; does nothing
// without that variable. Every error that carries verdicts calls it; a terminate handler writes
// uncaught exceptions. The first error stays, unless it is the consequence of another rank's error
// and one of this rank's own follows. Never fails.
void leave_error_file(const std::string& text, const std::vector<Verdict>& verdicts) noexcept;

// The same for an error without verdicts that is the consequence of what these ranks did (global
// numbers; empty: unknown).
void leave_consequence(const std::string& text, const std::vector<int>& because_of) noexcept;

// Called in the launcher: nullopt if there is no such file, or none that a rank has written.
std::optional<ErrorRecord> read_error_file(const std::string& path);

}  // namespace brigade::dist
