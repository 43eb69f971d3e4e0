// Messages from rank to rank: values, order, tags, batches in any order, and errors. On every backend.
#include "rank_case.h"

#include <brigade/core/factory.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/groups/new_group.h>
#include <brigade/dist/groups/point_to_point.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

namespace brigade::test::point_to_point_cases {
using dist::CollectiveError;
using dist::P2POp;
using dist::ProcessGroupPtr;

constexpr std::chrono::milliseconds kShort{1500};

Tensor filled(int64_t numel, DType dtype, double value) {
  const Tensor x = empty({numel}, dtype);
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

// All ranks send to the next and to the previous rank before they receive; a third message is empty.
std::string ring(const ProcessGroupPtr& group) {
  const int n = group->size(), own = group->rank(), next = (own + 1) % n, before = (own + n - 1) % n;
  for (int round = 0; round < 3; ++round) {
    for (const DType dtype : {kFloat32, kInt64, kBFloat16}) {
      const Tensor mine = filled(1000, dtype, own * 10 + round), theirs = filled(1000, dtype, -1);
      const Tensor back = filled(3, dtype, own + 50), from_next = filled(3, dtype, -1), nothing = empty({0}, dtype);
      for (const dist::WorkPtr& work : dist::batch_isend_irecv({{P2POp::Isend, mine, next, group},
                                                                {P2POp::Isend, back, before, group, 1},
                                                                {P2POp::Isend, nothing, next, group},
                                                                {P2POp::Irecv, from_next, next, group, 1},
                                                                {P2POp::Irecv, theirs, before, group},
                                                                {P2POp::Irecv, nothing, before, group}}))
        work->wait();
      for (const std::string& wrong : {is("of the rank before", theirs, before * 10 + round),
                                       is("of the next rank", from_next, next + 50), is("own", mine, own * 10 + round)})
        if (!wrong.empty()) return wrong;
    }
  }
  return "";
}
const AddRankCase ring_case("all ranks send before they receive, in a batch", ring);

// Ten messages with each of two tags; the receiver takes the second tag first.
std::string order_and_tags(const ProcessGroupPtr& group) {
  if (group->rank() > 1) return "";
  std::vector<Tensor> tensors;
  std::vector<dist::WorkPtr> works;
  for (const int tag : {3, 700}) {
    for (int i = 0; i < 10; ++i) {
      const int asked = group->rank() == 0 ? tag : 703 - tag;
      tensors.push_back(filled(100 + i, kFloat32, group->rank() == 0 ? tag + i : -1));
      works.push_back(group->rank() == 0 ? dist::isend(group, tensors.back(), 1, asked)
                                         : dist::irecv(group, tensors.back(), 0, asked));
    }
  }
  for (size_t i = works.size(); i-- > 0;)
    works[i]->wait();
  for (int i = 0; group->rank() == 1 && i < 20; ++i) {
    const double expected = (i < 10 ? 700 : 3) + i % 10;
    if (const std::string wrong = is(fmt::format("message {}", i), tensors[static_cast<size_t>(i)], expected);
        !wrong.empty())
      return wrong;
  }
  return "";
}
const AddRankCase order_case("messages of a tag come in the order of their sending, tags on their own", order_and_tags);

// Two ranks exchange a message while collectives of all ranks run; in a subgroup, ranks are numbered within it.
std::string beside_collectives(const ProcessGroupPtr& group) {
  const int own = group->rank(), last = group->size() - 1;
  const Tensor sum = filled(10, kFloat32, 1), answer = filled(5, kFloat64, own == last ? 7 : -1);
  dist::WorkPtr message;
  if (own == last) message = dist::isend(group, answer, 0);
  group->all_reduce(sum)->wait();
  if (own == 0) dist::recv(group, answer, last);
  if (message) message->wait();
  if (own == 0) {
    if (const std::string wrong = is("of the last rank", answer, 7); !wrong.empty()) return wrong;
  }
  if (const std::string wrong = is("sum", sum, group->size()); !wrong.empty()) return wrong;
  if (group->size() < 3) return "";
  const ProcessGroupPtr upper = dist::new_group(group, {1, 2});
  const Tensor x = filled(4, kFloat32, own);
  if (own == 1) dist::send(upper, x, 1);
  if (own == 2) dist::recv(upper, x, 0);
  if (own == 0)
    return expect_error<DistError>([&] { dist::send(upper, x, 1); }, {"isend: this rank is no member of the group"});
  return own < 3 ? is("in the subgroup", x, 1) : "";
}
const AddRankCase beside_case("messages go beside collectives, and within a subgroup", beside_collectives);

// The first rank to post an all_reduce waits for something else of its peers, who wait for the all_reduce first.
void waits_elsewhere(const std::string& backend, int ranks) {
  const auto body = [](const ProcessGroupPtr& group) -> std::string {
    const int own = group->rank(), size = group->size();
    std::vector<int> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    const ProcessGroupPtr other = dist::new_group(group, all);
    for (const bool is_message : {true, false}) {
      group->barrier();
      if (own != 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const Tensor sum = filled(100, kFloat32, 1), x = filled(4, kFloat32, own);
      const dist::WorkPtr reduced = group->all_reduce(sum);
      if (own != 0) reduced->wait();
      if (!is_message) {
        other->all_reduce(x)->wait();
      } else if (own == 0) {
        dist::recv(group, x, 1);
      } else if (own == 1) {
        dist::send(group, x, 0);
      }
      reduced->wait();
      if (const std::string wrong = is("sum", sum, size); !wrong.empty()) return wrong;
      const double expected = is_message ? std::max(own, 1) : size * (size - 1) / 2.0;
      if (const std::string wrong = is("x", x, expected); !wrong.empty()) return wrong;
    }
    return "";
  };
  expect_all_well(run_ranks(backend, ranks, body, std::chrono::seconds(10)));
}
const AddRankCase elsewhere_case("a rank that waits elsewhere does its part in what it has posted", waits_elsewhere,
                                 everywhere({2, 3}));

std::string wrong_arguments(const ProcessGroupPtr& group) {
  const int own = group->rank(), other = own == 0 ? 1 : 0;
  const Tensor x = filled(4, kFloat32, 0), matrix = empty({2, 3});
  const std::vector<std::string> found{
      expect_error<ValueError>([&] { dist::isend(group, x, own); },
                               {fmt::format("isend: rank {} is this rank itself", own), "point_to_point_cases.cpp"}),
      expect_error<ValueError>([&] { dist::recv(group, x, own); }, {"irecv: rank", "is this rank itself"}),
      expect_error<ValueError>(
          [&] { dist::send(group, x, group->size()); },
          {fmt::format("rank {0} is not a rank of the group, 0 to {1}", group->size(), group->size() - 1)}),
      expect_error<ValueError>([&] { dist::irecv(group, x, -1); }, {"irecv: rank -1 is not a rank"}),
      expect_error<ValueError>([&] { dist::irecv(group, x, other, 65536); },
                               {"expected a tag from 0 to 65535, got 65536"}),
      expect_error<ValueError>([&] { dist::isend(group, Tensor(), other); }, {"isend: the tensor is undefined"}),
      expect_error<ValueError>([&] { dist::isend(nullptr, x, other); }, {"the process group is empty"}),
      expect_error<ShapeError>([&] { dist::isend(group, matrix.t(), other); }, {"expected a contiguous tensor"}),
      expect_error<ValueError>([&] { dist::batch_isend_irecv({}); }, {"expected at least one message, got none"}),
      // No message of a batch is posted if one of them is wrong: rank 1 would wait for the first of these.
      expect_error<ValueError>(
          [&] {
            dist::batch_isend_irecv({{P2POp::Isend, x, other, group}, {P2POp::Irecv, x, own, group}});
          },
          {"is this rank itself"})};
  for (const std::string& each : found) {
    if (!each.empty()) return each;
  }
  return "";
}
const AddRankCase arguments_case("messages to oneself, to nobody and of no tensor are refused", wrong_arguments);

// Both ranks report the mismatch, with both lines; the group and other channels go on.
void sizes_or_dtypes_differ(const std::string& backend, int ranks) {
  const auto body = [](const ProcessGroupPtr& group) -> std::string {
    if (group->rank() > 1) {
      group->barrier();
      return "";
    }
    const bool sends = group->rank() == 0;
    const auto exchange = [&](const Tensor& x, int tag) {
      (sends ? dist::isend(group, x, 1, tag) : dist::irecv(group, x, 0, tag))->wait();
    };
    const std::string sizes =
        expect_error<CollectiveError>([&] { exchange(filled(sends ? 4 : 5, kFloat32, 1), 1); },
                                      {"message", "tag 1", "4", "5", "point_to_point_cases.cpp", "rank 0", "rank 1"});
    if (!sizes.empty()) return sizes;
    const std::string dtypes = expect_error<CollectiveError>(
        [&] { exchange(filled(4, sends ? kFloat32 : kInt32, 1), 2); }, {"message", "float32", "int32", "tag 2"});
    if (!dtypes.empty()) return dtypes;
    const std::string again =
        expect_error<CollectiveError>([&] { exchange(filled(4, kFloat32, 1), 2); }, {"float32", "int32"});
    if (!again.empty()) return again;
    const Tensor x = filled(4, kFloat32, sends ? 9 : -1);
    exchange(x, 3);
    group->barrier();
    return is("after errors", x, 9);
  };
  expect_well(backend, ranks, body);
}
const AddRankCase differ_case("messages whose sizes or dtypes differ are an error on both ranks",
                              sizes_or_dtypes_differ);

// The peer does not post the first message with a tag, or one that follows another.
void nobody_posts(const std::string& backend, int ranks) {
  const SharedCount gave_up;
  const auto body = [&](const ProcessGroupPtr& group) -> std::string {
    if (group->rank() > 1) return "";
    const bool sends = group->rank() == 0;
    const Tensor x = filled(4, kFloat32, sends ? 5 : -1);
    const std::string first =
        sends ? expect_error<TimeoutError>([&] { dist::send(group, x, 1, 4); },
                                           {"rank 1", "tag 4", "1500 ms", "point_to_point_cases.cpp"})
              : expect_error<TimeoutError>([&] { dist::recv(group, x, 0, 6); }, {"rank 0", "tag 6", "1500 ms"});
    if (!first.empty()) return first;
    if (sends) {
      const SharedCount::AddAtEnd adds{gave_up};
      dist::send(group, x, 1, 5);
      return expect_error<TimeoutError>([&] { dist::send(group, x, 1, 5); }, {"rank 1", "message", "tag 5"});
    }
    dist::recv(group, x, 0, 5);
    if (!gave_up.wait_for(1)) return "the other waits on";  // this rank is alive, but does not post
    return is("before", x, 5);
  };
  expect_all_well(run_ranks(backend, ranks, body, kShort));
}
const AddRankCase nobody_case("a message that the peer never posts ends at the timeout and names it", nobody_posts,
                              everywhere({2}));

// A rank that waits for one that has left learns of it long before the timeout.
void peer_leaves(const std::string& backend, int ranks) {
  const auto body = [](const ProcessGroupPtr& group) -> std::string {
    if (group->rank() > 1) return "";
    const Tensor x = filled(4, kFloat32, 1);
    if (group->rank() == 1) {
      dist::send(group, x, 0);
      return "";
    }
    dist::recv(group, x, 1);
    return expect_error<PeerError>([&] { dist::recv(group, x, 1); }, {"rank 1", "message", "tag 0"});
  };
  expect_well(backend, ranks, body);
}
const AddRankCase leaves_case("a message of a rank that has left is an error that names it", peer_leaves);

}  // namespace brigade::test::point_to_point_cases
