// What a rank leaves for the launcher of its host when it fails: a file that says when, and whether
// the error is its own or the consequence of what another rank did. The order in which processes
// end tells little: the victims of a rank are often gone before it is.
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
  std::vector<int> because_of;  // these ranks, where they are known
  std::string clock;            // date and time in UTC
  std::string text;
};

// In a rank: writes the file that BRIGADE_ERROR_FILE names, whole or not at all; without that
// variable nothing. Called by every error that carries verdicts; an uncaught exception is written
// by a terminate handler. The first error stays, unless an own one follows the consequence of
// another rank's. Never fails.
void leave_error_file(const std::string& text, const std::vector<Verdict>& verdicts) noexcept;

// The same for an error without verdicts that is the consequence of what these ranks did (global
// numbers; empty: of what is not known).
void leave_consequence(const std::string& text, const std::vector<int>& because_of) noexcept;

// In the launcher: nullopt when there is no such file, or none that a rank has written.
std::optional<ErrorRecord> read_error_file(const std::string& path);

}  // namespace brigade::dist
