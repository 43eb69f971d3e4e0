// Collects rows, keeps standard output free for them, and writes them as JSON and as flat CSV.
#include <brigade/lab/results.h>

#include <brigade/core/atomic_file.h>
#include <brigade/core/error.h>
#include <brigade/lab/json.h>

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

namespace brigade::lab {

// RAII: redirects standard output to standard error, for this process and its children; write() writes to the
// original standard output.
class StandardOutput {
 public:
  StandardOutput() {
    flush();
    before_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (before_ < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
      throw IoError("cannot write to standard output: {}", std::strerror(errno));
  }
  ~StandardOutput() {
    flush();
    dup2(before_, STDOUT_FILENO);
    close(before_);
  }
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  void write(const std::string& text) const {
    for (size_t done = 0; done < text.size();) {
      const ssize_t now = ::write(before_, text.data() + done, text.size() - done);
      if (now < 0 && errno == EINTR) continue;
      if (now <= 0) throw IoError("cannot write to standard output: {}", std::strerror(errno));
      done += static_cast<size_t>(now);
    }
  }

 private:
  static void flush() {
    std::cout.flush();
    std::fflush(stdout);
  }
  int before_;
};

Results::Results() : rows_(std::make_unique<nlohmann::json>(nlohmann::json::array())) {}
Results::~Results() = default;

void Results::add_json_option(Command& command) {
  command.add_option("--json", json_file_, "write the results as JSON to a file (- for standard output)");
}

void Results::add_options(Command& command) {
  add_json_option(command);
  command.add_option("--csv", csv_file_, "write the results as a table to a file (- for standard output)");
}

void Results::begin() {
  if (json_file_ == "-" && csv_file_ == "-")
    throw ValueError("--json - and --csv - cannot both go to standard output; give one of them a file");
  for (const std::string* path : {&json_file_, &csv_file_}) {
    if (*path != "-") check_output(*path);
  }
  if (json_file_ == "-" || csv_file_ == "-") standard_output_ = std::make_unique<StandardOutput>();
}

void Results::keep_silent() {
  json_file_.clear();
  csv_file_.clear();
  std::cout.flush();
  std::fflush(stdout);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) throw IoError("cannot open /dev/null: {}", std::strerror(errno));
  close(nowhere);
}

void Results::add(nlohmann::json row) { rows_->push_back(std::move(row)); }

void Results::write() {
  if (!json_file_.empty()) {
    nlohmann::json output = json_envelope(command_line());
    output["results"] = *rows_;
    // A name in another encoding must not make the output fail.
    put(json_file_, output.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  if (!csv_file_.empty()) put(csv_file_, to_csv(*rows_));
}

void Results::put(const std::string& path, const std::string& text) {
  if (path == "-") {
    standard_output_->write(text);
  } else {
    write_file(path, text);
  }
}

namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

void flatten(const std::string& name, const nlohmann::json& value, Fields& out) {
  if (value.is_object()) {
    for (const auto& [key, part] : value.items())
      flatten(name.empty() ? key : name + "." + key, part, out);
  } else if (value.is_string()) {
    out.emplace_back(name, value.get<std::string>());
  } else {
    out.emplace_back(name, value.is_null() ? "" : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

}  // namespace

std::string to_csv(const nlohmann::json& rows) {
  std::vector<Fields> lines;
  std::vector<std::string> titles;  // in order of first appearance
  for (const nlohmann::json& row : rows) {
    flatten("", row, lines.emplace_back());
    for (const auto& [title, unused] : lines.back()) {
      if (std::find(titles.begin(), titles.end(), title) == titles.end()) titles.push_back(title);
    }
  }
  std::string text;
  for (const std::string& title : titles)
    text += (text.empty() ? "" : ",") + csv_field(title);
  text += "\n";
  for (const Fields& line : lines) {
    for (size_t i = 0; i < titles.size(); ++i) {
      const auto found =
          std::find_if(line.begin(), line.end(), [&](const auto& one) { return one.first == titles[i]; });
      text += (i == 0 ? "" : ",") + (found == line.end() ? std::string() : csv_field(found->second));
    }
    text += "\n";
  }
  return text;
}

}  // namespace brigade::lab
