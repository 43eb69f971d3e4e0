// Parts of the JSON that every command can write (docs/cli.md), and a check of its output file.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace brigade::lab {

// {"command", "version", "commit", "machine", "results": []}
nlohmann::json json_envelope(const std::vector<std::string>& command);
// Call it before the work. Throws ValueError if `path` ("" means no file) cannot be written. Leaves an existing
// file unchanged.
void check_output(const std::string& path);
// {"median", "min", "max", "n"}
nlohmann::json statistics(std::vector<double> values);
double median(std::vector<double> values);
// The words of this process's command line.
std::vector<std::string> command_line();

}  // namespace brigade::lab
