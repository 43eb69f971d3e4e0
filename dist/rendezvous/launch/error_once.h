// Lets the text of an error that several ranks raise through once.
//
// Ranks announce the texts of their errors before they print them (dist/errors/announcement.h);
// how a text comes to be printed is theirs: by the handler of uncaught exceptions, or by a program
// that catches it. So the lines of a rank are compared with what it has announced: lines that may
// become such a text are held back until it is whole. Then the first rank's text passes in one
// piece, and the same error of another rank becomes one line. Lines that turn out to be something
// else pass as they are: nothing but a whole text that was shown before is ever left out.
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
    std::vector<std::string> brief;  // the same, with "(the error above)" in place of the text of an announced error
  };

  // Errors with the same key are the same.
  void announce(int rank, const std::string& key, const std::string& text);
  // Whether the rank may be about to print an error, so that a line must be waited for until it is
  // whole.
  bool expects(int rank) const { return !ranks_.empty() && ranks_.contains(rank); }
  // The next line of a rank's output: what can be shown now.
  Lines line(int rank, const std::string& line);
  // No more lines of this rank will come: what was held back.
  Lines end(int rank);

 private:
  struct Error {
    std::string key;
    std::vector<std::string> lines;
  };
  struct Rank {
    std::deque<Error> announced;  // the last few: what is printed was raised just before
    std::vector<std::string> held;
    std::vector<size_t> candidates;  // the announced errors that begin with what is held
  };

  Lines show(int rank, const Error& error, const std::vector<std::string>& lines);

  std::map<int, Rank> ranks_;
  std::map<std::string, int> shown_by_;
};

}  // namespace brigade::dist
