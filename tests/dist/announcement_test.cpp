// Announcing errors to a launcher, and which of them count as the same error.
#include <brigade/dist/errors/error_file.h>
#include <brigade/dist/groups/collective_errors.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace brigade::test::announcement_test {
using dist::RankName;
using dist::Verdict;

// The key that the launcher receives when `raise` reports an error.
std::string key_of(const std::function<void()>& raise) {
  const dist::AnnouncementSocket socket;
  REQUIRE(socket.fd() >= 0);
  setenv("BRIGADE_ANNOUNCE_TO", socket.address_for(5).c_str(), 1);
  raise();
  unsetenv("BRIGADE_ANNOUNCE_TO");
  std::vector<std::string> keys;
  socket.receive([&](int rank, const std::string& key, const std::string&) {
    CHECK(rank == 5);
    keys.push_back(key);
  });
  REQUIRE(keys.size() == 1);
  return keys[0];
}

std::string key_of_lost(RankName waiting, RankName lost) {
  return key_of([&] {
    dist::RankStatus place;
    place.rank = lost;
    dist::lost_rank_error({.rank = waiting, .collective = {.kind = dist::CollectiveKind::AllReduce}}, place,
                          {dist::Departure::How::Left, ""}, "");
  });
}

std::string key_of_missing(RankName waiting, RankName missing) {
  return key_of([&] {
    const std::vector<dist::RankStatus> places{{.rank = missing}};
    dist::missing_ranks_error({.rank = waiting, .collective = {.kind = dist::CollectiveKind::AllReduce}}, places,
                              "time-out");
  });
}

std::string key_of_reduction(const dist::RankNames& names) {
  return key_of([&] {
    Verdict verdict;
    verdict.kind = "unused_parameters";
    verdict.ranks = {1};
    dist::ReductionError("b.weight was never ready on rank 1" + names.legend(2), {verdict});
  });
}

TEST_CASE("the same error on two ranks of a subgroup has one key, and on ranks of another subgroup another") {
  for (const auto key : {&key_of_lost, &key_of_missing}) {
    const std::string of_2_3_4 = key({0, 2}, {1, 3});
    CHECK(key({2, 4}, {1, 3}) == of_2_3_4);
    CHECK(key({0, 0}, {1, 1}) != of_2_3_4);  // of 0, 1
    CHECK(key({0, 5}, {1, 6}) != of_2_3_4);  // of 5, 6
  }
  const dist::RankNames world;
  const auto subgroup = [&](const std::vector<int>& ranks) { return key_of_reduction(world.subgroup(ranks)); };
  CHECK(subgroup({2, 3}) == subgroup({2, 3}));
  CHECK(subgroup({0, 1}) != subgroup({2, 3}));
  CHECK(subgroup({4, 5}) != subgroup({2, 3}));
}

}  // namespace brigade::test::announcement_test
