// What a first-time user meets: the demo and its next steps, the programs of planted faults, the files named by
// verdicts, mistyped commands.
#include "program.h"

#include <brigade/lab/options.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace brigade::test::first_run_test {

namespace fs = std::filesystem;

const fs::path kRoot = BRIGADE_SOURCE_DIR;

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

// The distinct places that a text names, such as "lab/faults/unused/no_grad.cpp:14".
std::set<std::pair<std::string, size_t>> places_in(const std::string& text) {
  static const std::regex place(R"(([A-Za-z0-9_./-]+\.(?:cpp|h|cu)):([0-9]+))");
  std::set<std::pair<std::string, size_t>> places;
  for (std::sregex_iterator found(text.begin(), text.end(), place), end; found != end; ++found)
    places.emplace((*found)[1], std::stoul((*found)[2]));
  return places;
}

// Checks that each place is a nonempty line of a repository file, given by its path from the root.
void check_places(const std::string& text) {
  for (const auto& [file, line] : places_in(text)) {
    CAPTURE(file);
    CAPTURE(line);
    REQUIRE(fs::is_regular_file(kRoot / file));
    const std::vector<std::string> lines = lines_of(kRoot / file);
    REQUIRE(line >= 1);
    REQUIRE(line <= lines.size());
    CHECK(lines[line - 1].find_first_not_of(" \t") != std::string::npos);
  }
}

// The commands that the demo lists at its end, without "brigade" and their descriptions.
std::vector<std::string> next_steps(const std::string& output) {
  const size_t heading = output.find("\nWhat next");
  REQUIRE(heading != output.npos);
  static const std::regex command("\n  brigade (.*?)  ");
  const std::string rest = output.substr(heading);
  std::vector<std::string> commands;
  for (std::sregex_iterator found(rest.begin(), rest.end(), command), end; found != end; ++found)
    commands.push_back((*found)[1]);
  return commands;
}

TEST_CASE("the demo ends with next steps, and each of them runs") {
  const Outcome demo = run_program("demo --quiet");
  REQUIRE_MESSAGE(demo.status == 0, demo.output);
  CHECK(places_in(demo.output).size() >= 2);
  check_places(demo.output);
  std::vector<std::string> steps = next_steps(demo.output);
  REQUIRE(steps.size() >= 2);
  CHECK(steps.front() == "diagnose UNU-12 --source");
  // ./program is the program of README.md; the test readme/two_ranks runs it.
  CHECK(steps.back() == "run -n 2 ./program");
  steps.pop_back();
  for (const std::string& step : steps) {
    CAPTURE(step);
    const Outcome outcome = run_program(step);
    const int expected = contains(step, "--form failing") ? 1 : 0;  // a training that fails
    CHECK_MESSAGE(outcome.status == expected, outcome.output);
    CHECK(outcome.output.size() > 200);
  }
}

TEST_CASE("diagnose --source shows each fault without its neighbors, with its path and the numbers of its lines") {
  const Outcome one = run_program("diagnose UNU-12 --source");
  REQUIRE_MESSAGE(one.status == 0, one.output);
  const std::string file = "lab/faults/unused/gan.cpp";
  CHECK(contains(one.output, "\n" + file + "\n\n   7  // UNU-12: "));
  const std::vector<std::string> lines = lines_of(kRoot / file);
  bool is_shown = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string number = std::to_string(i + 1);
    number.insert(0, 4 - number.size(), ' ');
    is_shown = is_shown || lines[i].starts_with("// UNU-12: ");
    CHECK_MESSAGE(contains(one.output, "\n" + number + "  " + lines[i] + "\n") == is_shown, number);
    is_shown = is_shown && lines[i] != "}  // namespace detach_between_gan_halves";
  }

  const fs::path rows = fs::temp_directory_path() / ("brigade-sources-" + std::to_string(getpid()) + ".json");
  const Outcome all = run_program("diagnose --all --source --json " + rows.string());
  REQUIRE(all.status == 0);
  std::ifstream in(rows);
  const nlohmann::json written = nlohmann::json::parse(in);
  fs::remove(rows);
  CHECK(written.at("results").size() > 100);
  for (const nlohmann::json& row : written.at("results")) {
    const std::string path = row.at("file"), id = row.at("id"), name = row.at("name"), source = row.at("source");
    CAPTURE(id);
    REQUIRE(fs::is_regular_file(kRoot / path));
    std::string part;
    for (size_t number = row.at("first_line"); part.size() < source.size(); ++number)
      part += lines_of(kRoot / path).at(number - 1) + "\n";
    CHECK(source == part);
    CHECK((source.starts_with("// " + id + ": ") || name == "assorted"));
    CHECK(contains(source, ".id = \"" + id + "\""));
    CHECK(source.find("\nnamespace ") == source.rfind("\nnamespace " + name + " {\n"));
    CHECK(source.find("\n}  // namespace " + name + "\n") == source.rfind("\n}"));
  }
}

TEST_CASE("the files in verdicts are there, from the root of the repository") {
  for (const auto& [command, status] :
       std::vector<std::pair<std::string, int>>{{"diagnose UNU-01 UNU-12 --backend threads", 0},
                                                {"diagnose COL-01 DIV-02 --backend threads", 0},
                                                {"train gan --form failing --quiet --backend threads", 1}}) {
    CAPTURE(command);
    const Outcome outcome = run_program(command);
    CHECK(outcome.status == status);
    CHECK_MESSAGE(!places_in(outcome.output).empty(), outcome.output);
    check_places(outcome.output);
  }
}

TEST_CASE("a mistyped word is reported with the nearest one that is known") {
  struct Row {
    const char* arguments;
    const char* expected;
  };
  for (const Row& row :
       {Row{"diagnoze UNU-01", "brigade: unknown command 'diagnoze'; the nearest is diagnose\n"},
        {"trian digits", "brigade: unknown command 'trian'; the nearest is train\n"},
        {"bench alreduce", "brigade bench: unknown command 'alreduce'; the nearest is allreduce\n"},
        {"train digits --epoch 2", "brigade train: unknown option --epoch; the nearest is --epochs\n"},
        {"diagnose UNU-01 --souce", "brigade diagnose: unknown option --souce; the nearest is --source\n"},
        {"diagnose UNU12", "unknown fault 'UNU12'; the nearest are UNU-12"},
        {"diagnose head_never_caled", "unknown fault 'head_never_caled'; the nearest are head_never_called"}}) {
    CAPTURE(row.arguments);
    const Streams found = run_program_apart(row.arguments);
    CHECK(found.status == 2);
    CHECK(found.output == "");
    CHECK_MESSAGE(contains(found.errors, row.expected), found.errors);
  }
}

TEST_CASE("the nearest words are those with the fewest letters to change, whatever the case") {
  const std::vector<std::string> known = {"train", "bench", "run", "trace", "run"};
  CHECK(lab::nearest_words("trian", known, 1) == std::vector<std::string>{"train"});
  CHECK(lab::nearest_words("RUN", known, 2) == std::vector<std::string>{"run", "train"});
  CHECK(lab::nearest_words("trac", known, 2) == std::vector<std::string>{"trace", "train"});
  CHECK(lab::nearest_words("trac", {}, 2).empty());
}

}  // namespace brigade::test::first_run_test
