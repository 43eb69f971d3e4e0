// differential run PROGRAMS RESULTS [--trace]   runs each program of a file, for run.py
// differential check FIXTURES...                compares with PyTorch's results, for ctest
#include "differential/fixture.h"
#include "differential/run.h"

#include <brigade/core/error.h>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace brigade;
using namespace brigade::differential;

// Writes a line of results after each program and flushes it: after a crash, the number of lines identifies the
// program.
int run_programs(const std::string& from, const std::string& to, bool with_trace) {
  std::ifstream programs(from);
  if (!programs) throw IoError("cannot open " + from);
  std::ofstream results(to);
  for (std::string line; std::getline(programs, line);) {
    const Program program = parse_program(nlohmann::json::parse(line));
    results << run(program, with_trace).to_json().dump() << std::endl;
  }
  if (!results) throw IoError("cannot write " + to);
  return 0;
}

int check_fixtures(const std::string& path) {
  const std::vector<Fixture> fixtures = read_fixtures(path);
  int failed = 0;
  for (const Fixture& fixture : fixtures) {
    const Result result = run(fixture.program);
    const std::string found = difference(fixture, result);
    if (found.empty()) continue;
    ++failed;
    std::cout << "program " << fixture.program.id << " differs: " << found << "\n"
              << to_text(shrunken(fixture, result)) << std::endl;
  }
  std::cout << path << ": " << fixtures.size() << " programs, " << failed << " differ" << std::endl;
  return failed > 0 || fixtures.empty() ? 1 : 0;
}

int usage() {
  std::cerr << "usage: differential run PROGRAMS RESULTS [--trace]\n       differential check FIXTURES...\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() >= 3 && words[0] == "run") {
      if (words.size() > 4 || (words.size() == 4 && words[3] != "--trace")) return usage();
      return run_programs(words[1], words[2], words.size() == 4);
    }
    if (words.size() < 2 || words[0] != "check") return usage();
    int worst = 0;
    for (size_t i = 1; i < words.size(); ++i)
      worst = std::max(worst, check_fixtures(words[i]));
    return worst;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}
