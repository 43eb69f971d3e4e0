// Shows the text of an error only once when several ranks raise it.
//
// Ranks announce the texts of their errors before they print them (dist/errors/error_file.h); a text may be printed
// by the handler of uncaught exceptions, or by a program that catches the error. So the lines of a rank are compared
// with its announced errors: lines that may form such a text are held back until it is complete. Then the first rank's
// text is shown in one piece, and the same error of another rank becomes one line. Lines that turn out to be something
// else are shown unchanged: only a complete text that was already shown is ever omitted.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace brigade::dist {

class ErrorOnce {
 public:
  struct Lines {
    std::vector<std::string> shown;
    std::vector<std::string> brief;  // the same, but "(the error above)" replaces the text of an announced error
  };

  // Errors with equal keys count as the same error.
  void announce(int rank, const std::string& key, const std::string& text);
  // Whether the rank may be about to print an error, so that a partial line must be held until it is complete.
  bool expects(int rank) const { return !ranks_.empty() && ranks_.contains(rank); }
  // Takes the next line of a rank's output; returns the lines that can be shown now.
  Lines line(int rank, const std::string& line);
  // Ends the output of a rank; returns the lines that were held back.
  Lines end(int rank);

 private:
  struct Error {
    std::string key;
    std::vector<std::string> lines;
  };
  struct Rank {
    std::deque<Error> announced;  // the last few: an error is printed soon after it is raised
    std::vector<std::string> held;
    std::vector<size_t> candidates;  // the announced errors that begin with the held lines
  };

  Lines show(int rank, const Error& error, const std::vector<std::string>& lines);

  std::map<int, Rank> ranks_;
  std::map<std::string, int> shown_by_;
};

}  // namespace brigade::dist
