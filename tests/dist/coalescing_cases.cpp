// Collectives that are collected and issued together: values, one Work for all, and what is refused. On every backend.
#include "rank_case.h"

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/dist/groups/coalescing_manager.h>
#include <brigade/dist/groups/new_group.h>
#include <brigade/kernels/factory.h>

#include <fmt/format.h>

#include <optional>

namespace brigade::test::coalescing_cases {
using dist::CoalescingManager;
using dist::ProcessGroupPtr;
using dist::WorkPtr;

Tensor filled(int64_t numel, double value, DType dtype = kFloat32) { return full({numel}, value, dtype); }

std::string is(const std::string& what, const Tensor& x, double expected) {
  for (const double found : x.to_vector<double>()) {
    if (found != expected) return fmt::format("{}: found {}, expected {}", what, found, expected);
  }
  return "";
}

std::string first_of(const std::vector<std::string>& wrong) {
  for (const std::string& each : wrong) {
    if (!each.empty()) return each;
  }
  return "";
}

// More collectives than a rank may have posted at once (shm: 32), with different dtypes and operations.
std::string reduced_together(const ProcessGroupPtr& group) {
  const int n = group->size(), own = group->rank();
  std::vector<Tensor> sums;
  CoalescingManager together(group);
  for (int i = 0; i < 50; ++i) {
    sums.push_back(filled(10 + i, own + i, i % 2 ? kFloat64 : kFloat32));
    group->all_reduce(sums.back());
  }
  const Tensor largest = filled(3, own, kInt64);
  const WorkPtr work = group->all_reduce(largest, {.op = dist::ReduceOp::Max});
  if (const std::string wrong = is("before the end", largest, own); !wrong.empty()) return wrong;
  if (work->is_completed()) return "complete before it was issued";
  const WorkPtr all = together.end();
  if (together.end() != all) return "another Work at the second end()";
  all->wait();
  if (!all->is_completed() || !work->is_completed()) return "not complete after the wait";
  work->wait();
  for (int i = 0; i < 50; ++i) {
    const std::string wrong = is(fmt::format("sum {}", i), sums[static_cast<size_t>(i)], n * i + n * (n - 1) / 2.0);
    if (!wrong.empty()) return wrong;
  }
  return is("maximum", largest, n - 1);
}
const AddRankCase reduced_case("all_reduce calls that are issued together reduce each tensor", reduced_together);

std::string other_kinds(const ProcessGroupPtr& group) {
  const int n = group->size(), own = group->rank();
  const Tensor a = filled(5, own), b = filled(7, own);
  {
    const CoalescingManager together(group);  // waits at its end
    group->broadcast(a, {.root = 1});
    group->broadcast(b, {.root = 0});
  }
  const Tensor gathered = filled(2 * n, -1), also = filled(3 * n, -1, kInt32);
  const Tensor two = filled(2, own), three = filled(3, own + 5, kInt32);
  {
    const CoalescingManager together(group);
    group->all_gather(gathered, two);
    group->all_gather(also, three);
  }
  const Tensor scattered = filled(2, -1), rest = filled(3, -1, kInt32);
  CoalescingManager together(group);
  group->reduce_scatter(scattered, gathered);
  group->reduce_scatter(rest, also);
  const WorkPtr work = together.end();
  work->wait(std::chrono::seconds(30));
  std::vector<std::string> wrong{is("from rank 1", a, 1), is("from rank 0", b, 0), is("scattered", scattered, n * own),
                                 is("the rest", rest, n * (own + 5))};
  for (int r = 0; r < n; ++r)
    wrong.push_back(is("gathered", view::slice(gathered, 0, 2 * r, 2 * r + 2), r));
  return first_of(wrong);
}
const AddRankCase kinds_case("broadcast, all_gather and reduce_scatter are issued together as well", other_kinds);

std::string refused(const ProcessGroupPtr& group) {
  const int n = group->size();
  const Tensor x = filled(4, 1), y = filled(4, 1), all = filled(4 * n, 0);
  const std::string here = "coalescing_cases.cpp:";
  std::vector<std::string> wrong{
      expect_error<ValueError>([] { CoalescingManager together(nullptr); }, {"the process group is empty", here})};
  {
    CoalescingManager together(group);
    const WorkPtr work = group->all_reduce(x);
    wrong.insert(
        wrong.end(),
        {expect_error<DistError>([&] { work->wait(); },
                                 {"all_reduce: its result is waited for before the coalescing manager of", here}),
         expect_error<DistError>([&] { work->wait(std::chrono::seconds(1)); }, {"wait after the manager's end()"}),
         expect_error<DistError>([&] { CoalescingManager inner(group); },
                                 {"the group has one already, made at", here, "end that one first"}),
         expect_error<ValueError>([&] { group->all_gather(all, y); },
                                  {"all_gather: the coalescing manager of", "has collected all_reduce", here}),
         expect_error<ValueError>([&] { group->all_reduce(view::slice(x, 0, 3, 4)); },
                                  {"shares memory with what the same coalescing manager has collected at", here}),
         expect_error<DistError>([&] { group->barrier(); }, {"barrier: it waits for the other ranks", here}),
         expect_error<DistError>([&] { group->monitored_barrier(std::chrono::seconds(1)); }, {"monitored_barrier: it"}),
         expect_error<DistError>([&] { dist::new_group(group, {0}); }, {"all_gather_text: it waits"})});
    group->all_reduce(y);
    together.end()->wait();
  }
  wrong.insert(wrong.end(), {is("x", x, n), is("y", y, n)});
  // A manager without calls.
  CoalescingManager nothing(group);
  nothing.end()->wait();
  const dist::ProcessGroupPtr low = dist::new_group(group, {0});
  if (group->rank() > 0)
    wrong.push_back(
        expect_error<DistError>([&] { CoalescingManager together(low); }, {"this rank is no member of the group"}));
  return first_of(wrong);
}
const AddRankCase refused_case("what a coalescing manager cannot collect is refused in words, and it goes on", refused);

// No rank posts anything, and the works report why.
std::string left_by_exception(const ProcessGroupPtr& group) {
  const Tensor x = filled(4, 1);
  WorkPtr work;
  const std::string thrown = expect_error<ValueError>(
      [&] {
        const CoalescingManager together(group);
        work = group->all_reduce(x);
        throw ValueError("no more apples");
      },
      {"no more apples"});
  const std::string told = expect_error<DistError>([&] { work->wait(); }, {"nothing was issued: an exception left"});
  if (!work->is_completed()) return "an error is not complete";
  const std::string before = is("after the exception", x, 1);
  group->all_reduce(x)->wait();
  return first_of({thrown, told, before, is("afterwards", x, group->size())});
}
const AddRankCase exception_case("an exception that leaves the block of a coalescing manager issues nothing",
                                 left_by_exception);

// The last rank collects something else. A rank that still waits for a part before the differing one learns of the
// difference from the rank that found it.
void differ(const std::string& backend, int ranks, const std::vector<int64_t>& sizes, const std::vector<int64_t>& odd,
            const std::vector<std::string>& parts) {
  const auto body = [&](const ProcessGroupPtr& group) {
    const bool is_odd = group->rank() == group->size() - 1;
    return expect_error<DistError>(
        [&] {
          std::vector<Tensor> tensors;
          std::optional<CoalescingManager> together;
          if (!(is_odd && odd.size() == 1)) together.emplace(group);
          for (const int64_t numel : is_odd ? odd : sizes) {
            tensors.push_back(filled(numel, 1));
            const WorkPtr work = group->all_reduce(tensors.back());
            if (!together) work->wait();
          }
          if (together) together->end()->wait();
        },
        parts);
  };
  expect_all_well(run_ranks(backend, ranks, body));
}
void check_differing(const std::string& backend, int ranks) {
  differ(backend, ranks, {8, 9}, {8, 9, 10}, {"rank 0 issues 2 collectives together here", " 3", "coalescing_cases"});
  differ(backend, ranks, {8, 9}, {8}, {"rank 0 issues 2 collectives together here", "this one by itself"});
  differ(backend, ranks, {8, 9}, {8, 7}, {"part 2 of 2", "of 9 x float32", "of 7 x float32", "different sizes"});
}
const AddRankCase differ_case("ranks that issue other collectives together are reported in what they differ",
                              check_differing);

}  // namespace brigade::test::coalescing_cases
