// Parts of the JSON that every command can write (docs/cli.md), and a look at where it goes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace brigade::lab {

// {"command", "version", "commit", "machine", "results": []}
nlohmann::json json_envelope(const std::vector<std::string>& command);
// Before the work is done: throws ValueError if `path` ("" is no file) could not be written. An
// existing file is left as it is.
void check_output(const std::string& path);
// {"median", "min", "max", "n"}
nlohmann::json statistics(std::vector<double> values);
double median(std::vector<double> values);
// The words of this process's command line.
std::vector<std::string> command_line();

}  // namespace brigade::lab
