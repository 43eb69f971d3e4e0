// The files of the flight recorder.
#include <brigade/dist/groups/new_group.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace brigade::test::flight_recorder_test {

namespace {

using dist::ProcessGroupPtr;
using nlohmann::json;

json read(const std::filesystem::path& file) {
  std::ifstream in(file);
  REQUIRE_MESSAGE(in.good(), file.string());
  return json::parse(in);
}

void sum(const ProcessGroupPtr& group, const char* what) {
  group->all_reduce(full({4}, 1), {.description = what})->wait();
}

}  // namespace

TEST_CASE("the file of a subgroup stands beside that of its group, under the global ranks of its members") {
  const auto folder = std::filesystem::temp_directory_path() / ("brigade_recorder_" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  setenv("BRIGADE_FLIGHT_RECORDER", folder.c_str(), 1);
  // Ranks 1 and 3 leave; 0 and 2 find that out in their pair, and then in the group.
  try {
    dist::run_threads(
        4,
        [](const ProcessGroupPtr& group) {
          const ProcessGroupPtr low = dist::new_group(group, {0, 1});
          const ProcessGroupPtr high = dist::new_group(group, {2, 3});
          if (group->rank() % 2 == 1) return;
          CHECK_THROWS_AS(sum(group->rank() == 0 ? low : high, "in the pair"), DistError);
          sum(group, "in the group");
        },
        std::chrono::milliseconds(600));
  } catch (const std::exception&) {
  }
  unsetenv("BRIGADE_FLIGHT_RECORDER");
  for (const int rank : {0, 2}) {
    const std::string own = "rank-" + std::to_string(rank);
    const json pair = read(folder / (own + "-in-" + (rank == 0 ? "0-1" : "2-3") + ".json"));
    CHECK(pair["rank"] == 0);
    CHECK(pair["world_size"] == 2);
    CHECK(pair["global_ranks"] == json{rank, rank + 1});
    CHECK(pair["entries"].back()["description"] == "in the pair");
    const json whole = read(folder / (own + ".json"));
    CHECK(whole["rank"] == rank);
    CHECK(whole["world_size"] == 4);
    CHECK(whole["global_ranks"] == json::array());
    CHECK(whole["entries"].back()["description"] == "in the group");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace brigade::test::flight_recorder_test
