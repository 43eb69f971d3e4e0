// CollectiveInfo and RankActivity: the numbers that ranks compare, their text, and round trips through shared memory
// and JSON.
#include <brigade/dist/errors/collective_info.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/errors/wire.h>
#include <brigade/dist/groups/shm/rank_status.h>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <set>
#include <vector>

namespace brigade::test::collective_info_test {
using dist::CollectiveInfo;
using dist::CollectiveKind;
using dist::Name;
using dist::Phase;
using dist::RankActivity;

CollectiveInfo bucket() {
  return {.sequence = 7,
          .kind = CollectiveKind::AllReduce,
          .op = dist::ReduceOp::Avg,
          .dtype = kFloat32,
          .count = 100,
          .topic = {Phase::Backward, dist::bucket_purpose(), {Name("DDP(Net)"), 2}, 3, Name("fp16_compress")},
          .iteration = 5,
          .where = {"examples/train.cpp", 12}};
}

using Change = std::function<void(CollectiveInfo&)>;
// Each change makes it a different collective.
std::vector<Change> changes() {
  return {[](CollectiveInfo& info) { info.kind = CollectiveKind::Broadcast; },
          [](CollectiveInfo& info) { info.op = dist::ReduceOp::Sum; },
          [](CollectiveInfo& info) { info.op.reset(); },
          [](CollectiveInfo& info) { info.dtype = kBFloat16; },
          [](CollectiveInfo& info) { info.dtype.reset(); },
          [](CollectiveInfo& info) { info.count = 101; },
          [](CollectiveInfo& info) { info.root = 0; },
          [](CollectiveInfo& info) { info.topic.phase = Phase::Report; },
          [](CollectiveInfo& info) { info.topic.purpose = Name("flags of bucket"); },
          [](CollectiveInfo& info) { info.topic.owner.name = Name("DDP(Other)"); },
          [](CollectiveInfo& info) { info.topic.owner.number = 3; },
          [](CollectiveInfo& info) { info.topic.index = 4; },
          [](CollectiveInfo& info) { info.topic.hook = Name("bf16_compress"); },
          [](CollectiveInfo& info) { info.topic.hook = Name(); },
          [](CollectiveInfo& info) { info.text = "loss"; },
          [](CollectiveInfo& info) { info.part = 1; },
          [](CollectiveInfo& info) { info.parts = 2; },
          [](CollectiveInfo& info) { info.parts_digest = 9; },
          [](CollectiveInfo& info) { info.mixed_op = true; },
          [](CollectiveInfo& info) { info.mixed_dtype = true; }};
}

// A round trip through the memory that the ranks of a host share.
CollectiveInfo through_memory(const CollectiveInfo& info) {
  dist::shm::Header header;
  const auto texts = std::make_unique<dist::shm::HeaderTexts>();
  tell(header, *texts, info);
  return info_of(header, *texts);
}

dist::Line line(const char* file, uint32_t number) { return {Name(file), number}; }

RankActivity busy() {
  RankActivity activity{.doing = dist::Doing::Backward,
                        .owner = {Name("DDP(A)"), 2},
                        .local_backwards = 3,
                        .after = line("train.cpp", 4),
                        .where = line("train.cpp", 9),
                        .text = "words"};
  activity.add(RankActivity::OfForward{{Name("DDP(A)"), 2}, line("a.cpp", 5)});
  activity.add(RankActivity::OfForward{{Name("DDP(B)")}, {}});
  activity.add(RankActivity::Missed{
      RankActivity::Missed::How::ForwardUnderNoGrad, {Name("DDP(C)")}, line("c.cpp", 6), line("c.cpp", 3)});
  activity.add(RankActivity::Missed{
      RankActivity::Missed::How::BackwardReachesNothing, {Name("DDP(D)"), 7}, line("d.cpp", 8), {}});
  return activity;
}

TEST_CASE("each thing that a collective is makes another number of it, and the line and the iteration do not") {
  std::set<uint64_t> digests{bucket().id().digest()};
  for (const Change& change : changes()) {
    CollectiveInfo other = bucket();
    change(other);
    CAPTURE(in_words(other));
    CHECK_FALSE(other.matches(bucket()));
    CHECK(digests.insert(other.id().digest()).second);
  }
  CollectiveInfo elsewhere = bucket();
  elsewhere.where = {"other.cpp", 1};
  elsewhere.iteration = 6;
  CHECK(elsewhere.id() == bucket().id());
  elsewhere.sequence = 8;
  CHECK(elsewhere.matches(bucket()));
  CHECK(elsewhere.id() != bucket().id());
}

TEST_CASE("a collective in words, and the same after it went through shared memory and through JSON") {
  CHECK(in_words(bucket()) ==
        "all_reduce(avg) of 100 x float32 \"bucket 3 of DDP(Net)#2, by hook fp16_compress\", number 5, at "
        "examples/train.cpp:12 (collective 7)");
  CollectiveInfo own{
      .sequence = 1, .kind = CollectiveKind::Broadcast, .dtype = kInt64, .count = 2, .root = 1, .text = "seed"};
  CHECK(in_words(own) == "broadcast(from rank 1) of 2 x int64 \"seed\" (collective 1)");
  CHECK(in_words(CollectiveInfo{.sequence = 3, .where = {"a.cpp", 2}}) == "barrier at a.cpp:2 (collective 3)");
  std::vector<CollectiveInfo> all{bucket(), own, CollectiveInfo{}};
  for (const Change& change : changes()) {
    all.push_back(bucket());
    change(all.back());
  }
  all.back().sizes = {{3, kFloat32}, {4, kInt64}};
  for (const CollectiveInfo& each : all) {
    for (const CollectiveInfo& back : {through_memory(each), dist::decoded<CollectiveInfo>(dist::to_text(each))}) {
      CHECK(back.id() == each.id());
      CHECK(in_words(back) == in_words(each));
      CHECK(back.sizes == each.sizes);
    }
  }
}

TEST_CASE("names that shared memory has no room for end in dots, and are compared whole") {
  CollectiveInfo one = bucket();
  one.topic.owner.name = Name("DDP(" + std::string(3000, 'n') + "one)");
  CollectiveInfo other = one;
  other.topic.owner.name = Name("DDP(" + std::string(3000, 'n') + "other)");
  dist::shm::Header headers[2];
  const auto texts = std::make_unique<dist::shm::HeaderTexts>();
  tell(headers[0], *texts, one);
  tell(headers[1], *texts, other);
  CHECK(headers[0].id != headers[1].id);
  const CollectiveInfo back = info_of(headers[1], *texts);
  CHECK(back.id() == other.id());
  CHECK(back.topic.owner != one.topic.owner);
  const std::string read = back.topic.owner.name.text();
  CHECK(read.size() > 1000);
  CHECK(read.size() < 1536);
  CHECK(read.ends_with("n..."));
}

TEST_CASE("what a rank does is the same after it went through shared memory and through JSON") {
  std::vector<RankActivity> all{RankActivity{}, busy(), {.doing = dist::Doing::Program, .text = "loading data"}};
  for (const dist::Doing doing : {dist::Doing::Forward, dist::Doing::AfterForward, dist::Doing::AfterBackward,
                                  dist::Doing::RefusedBackward, dist::Doing::Step}) {
    all.push_back(busy());
    all.back().doing = doing;
  }
  for (const RankActivity& each : all) {
    const auto record = std::make_unique<dist::shm::ActivityRecord>();
    tell(*record, each);
    CHECK(activity_of(*record) == each);
    CHECK(dist::decoded<RankActivity>(dist::to_text(each)) == each);
  }
}

TEST_CASE("what a rank does, in words") {
  CHECK(in_words(RankActivity{}) == "");
  RankActivity activity = busy();
  const std::string missed =
      ", after the forward of DDP(C) at c.cpp:6 under no_grad from c.cpp:3, after the backward at d.cpp:8 reached nothing of "
      "DDP(D)#7";
  CHECK(in_words(activity) == "a backward of DDP(A)#2, of the forward at a.cpp:5; of DDP(B)" + missed);
  activity.doing = dist::Doing::AfterBackward;
  CHECK(in_words(activity) == "its own code, after a backward of DDP(A)#2 at train.cpp:4" + missed);
  activity.doing = dist::Doing::Step;
  CHECK(in_words(activity) == "a step of DDP(A)#2, with 3 backwards under no_sync not reduced" + missed);
}

TEST_CASE("more wrappers than there is room for are left out") {
  RankActivity activity;
  for (int i = 0; i < 10; ++i) {
    activity.add(RankActivity::OfForward{});
    activity.add(RankActivity::Missed{});
  }
  CHECK(activity.forwards().size() == RankActivity::kMostForwards);
  CHECK(activity.missed().size() == RankActivity::kMostMissed);
}

}  // namespace brigade::test::collective_info_test
