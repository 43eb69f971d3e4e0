// The files of the flight recorder.
#include <brigade/dist/groups/new_group.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace brigade::test::flight_recorder_test {
using dist::ProcessGroupPtr;
using nlohmann::json;

json read(const std::filesystem::path& file) {
  std::ifstream in(file);
  REQUIRE_MESSAGE(in.good(), file.string());
  return json::parse(in);
}

// The files whose names begin with `prefix`, sorted by name.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder, const std::string& prefix) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string number_of(const ProcessGroupPtr& group) { return group->names().identity(); }

void sum(const ProcessGroupPtr& group, const char* what) {
  group->all_reduce(full({4}, 1.0), {.description = what})->wait();
}

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
    const auto files = files_of(folder, own + "-in-" + (rank == 0 ? "0-1" : "2-3") + "-group-");
    REQUIRE(files.size() == 1);
    const json pair = read(files[0]);
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

TEST_CASE("subgroups with the same members have files of their own, those of subgroups too") {
  const auto folder = std::filesystem::temp_directory_path() / ("brigade_recorders_" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  setenv("BRIGADE_FLIGHT_RECORDER", folder.c_str(), 1);
  std::vector<std::string> identities(3);
  try {
    dist::run_threads(
        2,
        [&](const ProcessGroupPtr& group) {
          const ProcessGroupPtr first = dist::new_group(group, {0, 1});
          const ProcessGroupPtr second = dist::new_group(group, {0, 1});
          const ProcessGroupPtr inner = dist::new_group(second, {0, 1});
          if (group->rank() == 1) return;
          identities = {number_of(first), number_of(second), number_of(inner)};
          CHECK_THROWS_AS(sum(first, "in the first"), DistError);
          CHECK_THROWS_AS(sum(second, "in the second"), DistError);
          CHECK_THROWS_AS(sum(inner, "in the inner"), DistError);
        },
        std::chrono::milliseconds(600));
  } catch (const std::exception&) {
  }
  unsetenv("BRIGADE_FLIGHT_RECORDER");
  CHECK(identities[0] != identities[1]);
  CHECK(identities[2].starts_with(identities[1] + "."));
  const char* const told[] = {"in the first", "in the second", "in the inner"};
  for (size_t i = 0; i < identities.size(); ++i) {
    const json record = read(folder / ("rank-0-in-0-1-group-" + identities[i] + ".json"));
    CHECK(record["group"] == identities[i]);
    CHECK(record["entries"].back()["description"] == told[i]);
  }
  CHECK(files_of(folder, "rank-0-in-0-1").size() == 3);
  std::filesystem::remove_all(folder);
}

}  // namespace brigade::test::flight_recorder_test
