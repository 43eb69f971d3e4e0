#include "rank_case.h"

#include <brigade/core/factory.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/groups/new_group.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <fmt/format.h>

#include <numeric>

namespace brigade::test::new_group_cases {
using dist::new_group;
using dist::ProcessGroupPtr;

const Sizes kSizes = everywhere({2, 4}, {"AABB", "ABAB", "AAAB"});
constexpr std::chrono::milliseconds kShort{1500};

// [first, last)
std::vector<int> ranks_from(int first, int last) {
  std::vector<int> ranks(static_cast<size_t>(last - first));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

// The lower half of the ranks, and the rest.
struct Halves {
  explicit Halves(const ProcessGroupPtr& group)
      : half(group->size() / 2),
        low(new_group(group, ranks_from(0, half))),
        high(new_group(group, ranks_from(half, group->size()))),
        own(group->rank() < half ? low : high),
        other(group->rank() < half ? high : low) {}
  int half;
  ProcessGroupPtr low, high, own, other;
};

Tensor filled(dist::ProcessGroup& group, double value, bool in_place) {
  const Tensor x = in_place ? group.allocate(1000, kFloat32) : empty({1000}, kFloat32);
  kernels::fill(x, value);
  return x;
}

std::string is(const std::string& what, const Tensor& x, double expected) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double found = detail::element_as_double(x, i);
    if (found != expected) return fmt::format("{}: element {} is {}, expected {}", what, i, found, expected);
  }
  return "";
}
std::string is(const std::string& what, const std::vector<int>& found, const std::vector<int>& expected) {
  return found == expected ? "" : fmt::format("{}: {}", what, dist::list_of(found));
}
std::string first_wrong(const std::vector<std::string>& found) {
  for (const std::string& each : found) {
    if (!each.empty()) return each;
  }
  return "";
}

// Many collectives in this rank's half and in the whole group, posted in another order in each half. All are posted
// before any is waited for.
std::string traffic_is_apart(const ProcessGroupPtr& group) {
  const int rank = group->rank();
  const Halves halves(group);
  const int first = rank < halves.half ? 0 : halves.half;
  const int members = halves.own->size();
  struct Posted {
    Tensor x;
    dist::WorkPtr work;
    double expected;
  };
  std::vector<Posted> all;
  for (int i = 0; i < 20; ++i) {
    const bool in_place = i % 2 == 0;
    const auto in_half = [&] {
      const Tensor x = filled(*halves.own, 100 * rank + i, in_place);
      const double sum = 100.0 * (first * members + members * (members - 1) / 2) + i * members;
      all.push_back({x, halves.own->all_reduce(x), sum});
    };
    if (rank < halves.half) in_half();
    const Tensor x = filled(*group, rank + i, in_place);
    const double sum = group->size() * (group->size() - 1) / 2.0 + i * group->size();
    all.push_back({x, group->all_reduce(x), sum});
    if (rank >= halves.half) in_half();
    const Tensor root = filled(*halves.own, rank * 1000 + i, in_place);
    all.push_back({root, halves.own->broadcast(root, {.root = members - 1}), (first + members - 1) * 1000.0 + i});
  }
  for (size_t i = all.size(); i-- > 0;) {
    all[i].work->wait();
    if (const std::string wrong = is(fmt::format("collective {}", i), all[i].x, all[i].expected); !wrong.empty())
      return wrong;
  }
  const Tensor gathered = empty({1000 * members}, kFloat32);
  halves.own->all_gather(gathered, filled(*halves.own, rank, false))->wait();
  const Tensor part = empty({1000}, kFloat32);
  halves.own->reduce_scatter(part, gathered)->wait();
  halves.own->barrier();
  for (int r = 0; r < members; ++r) {
    if (detail::element_as_double(gathered, r * 1000) != first + r) return "all_gather";
  }
  return is("reduce_scatter", part, members * rank);
}
const AddRankCase add_traffic("the collectives of two subgroups and of their group at the same time do not mix",
                              &traffic_is_apart, kSizes);

// Reduces inside each half, then over the first ranks of both halves, and broadcasts the sum back.
std::string hierarchy_equals_whole(const ProcessGroupPtr& group) {
  const Halves halves(group);
  const ProcessGroupPtr leaders = new_group(group, {0, halves.half});
  Tensor whole = empty({257}, kFloat64);
  for (int64_t i = 0; i < whole.numel(); ++i)
    whole.data_ptr<double>()[i] = static_cast<double>((i * 31 + group->rank() * 17) % 1000);
  const Tensor by_steps = whole.clone();
  group->all_reduce(whole)->wait();
  halves.own->all_reduce(by_steps)->wait();
  if (dist::get_rank(leaders) >= 0) leaders->all_reduce(by_steps)->wait();
  halves.own->broadcast(by_steps, {.root = 0})->wait();
  return bits_of({by_steps}) == bits_of({whole}) ? "" : "the sums differ";
}
const AddRankCase add_hierarchy("reduced in subgroups, over their first ranks, and sent back: the sum of the whole",
                                &hierarchy_equals_whole, kSizes);

std::string ranks_are_counted_in_order(const ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  const ProcessGroupPtr ends = new_group(group, {last, 0}, {.timeout = std::chrono::seconds(7)});
  const bool is_member = group->rank() == 0 || group->rank() == last;
  const int expected = group->rank() == 0 ? 0 : group->rank() == last ? 1 : -1;
  const ProcessGroupPtr alone = new_group(group, {last});
  const ProcessGroupPtr inner = is_member ? new_group(ends, {1}) : nullptr;
  if (ends->timeout() != std::chrono::seconds(7) || alone->timeout() != group->timeout()) return "time-out";
  if (is_member && std::string(ends->backend()) != group->backend()) return "backend";
  if (is_member && ends->size() != 2) return "size";
  if (dist::get_rank(ends) != expected) return "rank";
  if (dist::get_world_size(ends) != (is_member ? 2 : -1)) return "world size";
  if (dist::get_rank(alone) != (group->rank() == last ? 0 : -1)) return "rank alone";
  if (dist::get_group_rank(ends, last) != 1 || dist::get_global_rank(ends, 1) != last) return "numbers";
  if (inner && dist::get_global_rank(inner, 0) != last) return "global rank of a subgroup's subgroup";
  if (expected == 1) {
    const Tensor x = filled(*inner, 3, true);
    inner->all_reduce(x)->wait();
    alone->all_reduce(x)->wait();
    if (const std::string wrong = is("a group of one", x, 3); !wrong.empty()) return wrong;
  }
  return first_wrong(
      {is("ranks of the world", dist::get_process_group_ranks(group), ranks_from(0, last + 1)),
       is("ranks of ends", dist::get_process_group_ranks(ends), {0, last}),
       expect_error<ValueError>([&] { dist::get_global_rank(ends, 2); }, {"0 to 1, got 2"}),
       expect_error<ValueError>([&] { dist::get_group_rank(ends, last + 1); },
                                {fmt::format("{} is not part of the group of global ranks 0, {}", last + 1, last)}),
       expect_error<ValueError>([&] { dist::get_rank(nullptr); }, {"the process group is empty"}),
       expect_error<ValueError>([&] { new_group(nullptr, {0}); }, {"the process group is empty"})});
}
const AddRankCase add_order("ranks count in the order of the group, also of a list in another order; groups nest",
                            &ranks_are_counted_in_order, kSizes);

std::string says_who_is_no_member(const ProcessGroupPtr& group) {
  const Halves halves(group);
  const dist::ProcessGroupPtr& other = halves.other;
  const std::vector<std::string> parts{fmt::format("rank {} is not a member of the group of ranks {}", group->rank(),
                                                   group->rank() < halves.half ? (group->size() == 2 ? "1" : "2, 3")
                                                                               : (group->size() == 2 ? "0" : "0, 1")),
                                       "new_group_cases.cpp:", "call it on members only"};
  const Tensor x = empty({8});
  const Tensor all = empty({8});
  const auto refused = [&](const char* what, const std::function<void()>& call) {
    std::vector<std::string> expected = parts;
    expected.push_back(std::string(what) + ": rank");
    return expect_error<DistError>(call, expected);
  };
  const std::string wrong = first_wrong(
      {refused("all_reduce", [&] { other->all_reduce(x); }), refused("broadcast", [&] { other->broadcast(x); }),
       refused("all_gather", [&] { other->all_gather(all, x); }),
       refused("reduce_scatter", [&] { other->reduce_scatter(x, all); }), refused("barrier", [&] { other->barrier(); }),
       refused("allocate", [&] { other->allocate(8, kFloat32); }),
       refused("allocate", [&] { other->all_gather_text("x"); }),
       refused("barrier", [&] { other->monitored_barrier(kShort); })});
  if (!wrong.empty()) return wrong;
  if (other->rank() != -1 || other->size() != -1) return "rank and size";
  other->abort("nobody hears it");
  group->barrier();
  return "";
}
const AddRankCase add_non_member("who is no member is informed by every collective", &says_who_is_no_member, kSizes);

std::string refuses_bad_lists(const ProcessGroupPtr& group) {
  const int n = group->size();
  const std::string range = fmt::format("0 to {}", n - 1);
  const auto refused = [&](const std::vector<int>& ranks, const std::vector<std::string>& parts,
                           const dist::NewGroupOptions& options = {}) {
    std::vector<std::string> expected = parts;
    expected.emplace_back("new_group_cases.cpp:");
    return expect_error<ValueError>([&] { new_group(group, ranks, options); }, expected);
  };
  const std::string wrong = first_wrong(
      {refused({}, {"expected at least one rank, got none"}), refused({0, n}, {range, fmt::format("got 0, {}", n)}),
       refused({-1, 0}, {range, "got -1, 0"}), refused({1, 0, 1}, {"each rank once, got 0, 1, 1"}),
       refused({0}, {"a time-out above 0, got 0 ms"}, {.timeout = std::chrono::milliseconds(0)})});
  if (!wrong.empty()) return wrong;
  const Tensor x = filled(*group, 1, true);
  group->all_reduce(x)->wait();
  return is("the group goes on", x, n);
}
const AddRankCase add_bad_lists("a list that cannot be is refused on every rank, and the group goes on",
                                &refuses_bad_lists, kSizes);

std::string compares_lists(const ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  const auto call = [&] {
    if (group->rank() == last) {
      new_group(group, {0});
    } else {
      new_group(group, {0, 1});
    }
  };
  const auto with_times = [&] { new_group(group, {0}, {.timeout = std::chrono::seconds(1 + group->rank() / last)}); };
  const std::string wrong =
      first_wrong({expect_error<dist::CollectiveError>(
                       call, {"The ranks met in different collectives: rank 0 in new_group \"ranks 0, 1; time-out",
                              fmt::format("rank {} in new_group \"ranks 0; time-out", last),
                              "new_group_cases.cpp:", "give the same list and time-out on every rank"}),
                   expect_error<dist::CollectiveError>(with_times, {"time-out 1000 ms", "time-out 2000 ms"})});
  if (!wrong.empty()) return wrong;
  const Tensor x = filled(*group, 1, true);
  group->all_reduce(x)->wait();
  return is("the group goes on", x, group->size());
}
const AddRankCase add_compare("lists that differ are an error with both lines on every rank, and the group goes on",
                              &compares_lists, kSizes);

void names_who_does_not_come(const std::string& backend, int ranks) {
  const SharedCount gave_up;
  const auto outcome = run_ranks(
      backend, ranks,
      [&](const ProcessGroupPtr& group) -> std::string {
        if (group->rank() == ranks - 1) return gave_up.wait_for(ranks - 1) ? "" : "nobody gave up";
        const SharedCount::AddAtEnd adds{gave_up};
        new_group(group, {0, 1});
        return "";
      },
      kShort);
  const Rank& first = outcome.front();
  CHECK(first.error == "TimeoutError");
  CHECK_MESSAGE(first.text.find("\"new_group\"") != std::string::npos, first.text);
  CHECK_MESSAGE(first.text.find(fmt::format("Rank {} did not come to", ranks - 1)) != std::string::npos, first.text);
  CHECK_MESSAGE(first.text.find("new_group_cases.cpp:") != std::string::npos, first.text);
}
const AddRankCase add_missing("a rank that does not call new_group is named, with the line of those who wait",
                              &names_who_does_not_come, {.threads = {2, 4}, .shm = {2, 4}, .others = {2, 4}});

// The second rank of the upper half (global rank 3) leaves or is late; the lower half works on.
void names_global_ranks(const std::string& backend, int ranks) {
  enum How { Leaves, IsLate };
  for (const How how : {Leaves, IsLate}) {
    CAPTURE(how);
    const SharedCount gave_up;
    const auto outcome = run_ranks(
        backend, ranks,
        [&, how](const ProcessGroupPtr& group) -> std::string {
          const Halves halves(group);
          const Tensor x = filled(*halves.own, 1, true);
          halves.own->all_reduce(x)->wait();
          if (group->rank() == 3) {
            return how == Leaves || gave_up.wait_for(1) ? "" : "nobody gave up";
          }
          if (group->rank() == 2) {
            const SharedCount::AddAtEnd adds{gave_up};
            halves.own->all_reduce(x, {.description = "numbers"})->wait();
            return "not reached";
          }
          // The lower half goes on for longer than the upper one waits.
          for (bool waits = true; waits;) {
            const Tensor known = full({1}, group->rank() == 0 && gave_up.reached(1) ? 1.0 : 0.0);
            halves.own->all_reduce(known, {.description = "numbers"})->wait();
            waits = known.item<float>() == 0;
          }
          return "went on";
        },
        kShort);
    CHECK_MESSAGE(outcome[2].error == (how == Leaves ? "PeerError" : "TimeoutError"), outcome[2].text);
    CHECK_MESSAGE(outcome[2].text.find("rank 1 (global rank 3)") != std::string::npos, outcome[2].text);
    CHECK_MESSAGE(outcome[2].text.find("rank 0 (global rank 2)") != std::string::npos, outcome[2].text);
    CHECK_MESSAGE(outcome[2].text.find("\"numbers\"") != std::string::npos, outcome[2].text);
  }
}
const AddRankCase add_names("a member that leaves or is late is named by its rank there and by its global rank",
                            &names_global_ranks, {.threads = {4}, .shm = {4}, .others = {4}, .layouts = {"ABAB"}});

std::string outlives_the_group(ProcessGroupPtr group) {
  const int rank = group->rank();
  ProcessGroupPtr all = new_group(group, ranks_from(0, group->size()));
  group.reset();
  const Tensor x = filled(*all, rank, true);
  all->all_reduce(x)->wait();
  return is("sum", x, all->size() * (all->size() - 1) / 2);
}
const AddRankCase add_outlives("a subgroup of all ranks works, also when its group is gone", &outlives_the_group,
                               kSizes);

}  // namespace brigade::test::new_group_cases
