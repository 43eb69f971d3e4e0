// Where the results of a command go: JSON (docs/cli.md) and CSV, each to a file or to standard
// output.
#pragma once

#include <brigade/lab/command_line.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace brigade::lab {

class StandardOutput;

// One object per command: its options when the command is made, begin() before the work, write()
// after it. A command prints what people read to std::cout, whatever the options are.
class Results {
 public:
  Results();
  ~Results();
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  // --json FILE
  void add_json_option(Command& command);
  // --json FILE and --csv FILE
  void add_options(Command& command);

  // Throws ValueError where a file could not be written or both are to go to standard output. From
  // here on, what this process and those that it starts print to standard output goes to standard
  // error if results go to standard output: a program that reads them finds nothing else there.
  void begin();
  // In place of begin(), on a rank that leaves printing and writing to another: standard output goes
  // to /dev/null, and no file is written.
  void keep_silent();
  void add(nlohmann::json row);
  // Whether write() will write anything, for rows that are large.
  bool are_wanted() const noexcept { return !json_file_.empty() || !csv_file_.empty(); }
  // Throws IoError. Where a command ends with an error, nothing is written.
  void write();

 private:
  void put(const std::string& path, const std::string& text);

  std::string json_file_, csv_file_;
  std::unique_ptr<nlohmann::json> rows_;
  std::unique_ptr<StandardOutput> standard_output_;
};

// Rows as a table: a line of titles, then a line each. What is inside an object has a column of its
// own ("time_us.median"); a list is one field, as JSON; what a row lacks is empty.
std::string to_csv(const nlohmann::json& rows);

}  // namespace brigade::lab
