// Writes the results of a command as JSON (docs/cli.md) and CSV, each to a file or to standard output.
#pragma once

#include <brigade/lab/command_line.h>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>

namespace brigade::lab {

class StandardOutput;

// One object per command: add its options when the command is made, call begin() before the work and write() after
// it. A command prints its human-readable output to std::cout regardless of the options.
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

  // Throws ValueError when a file cannot be written, or when both results go to standard output. If results go to
  // standard output, everything else that this process and its children print there is redirected to standard error
  // from here on, so that a program reading the results finds nothing else.
  void begin();
  // Called instead of begin() on a rank that leaves printing and writing to another: standard output goes to
  // /dev/null, and no file is written.
  void keep_silent();
  void add(nlohmann::json row);
  // Whether write() will write anything; lets callers skip building large rows.
  bool are_wanted() const noexcept { return !json_file_.empty() || !csv_file_.empty(); }
  // Throws IoError. A command that ends with an error writes nothing.
  void write();

 private:
  void put(const std::string& path, const std::string& text);

  std::string json_file_, csv_file_;
  std::unique_ptr<nlohmann::json> rows_;
  std::unique_ptr<StandardOutput> standard_output_;
};

// Converts rows to a table: a line of titles, then a line per row. Each member of an object has a column of its own
// ("time_us.median"); a list is one field, as JSON; a field that a row lacks is empty.
std::string to_csv(const nlohmann::json& rows);

}  // namespace brigade::lab
