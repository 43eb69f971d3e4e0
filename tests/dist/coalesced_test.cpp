// Collectives that are issued together as one, and the reported difference between two of them.
#include <brigade/dist/errors/collective.h>
#include <brigade/dist/errors/collective_info.h>

#include <doctest/doctest.h>

namespace brigade::test::coalesced_test {
using dist::CollectiveInfo;

CollectiveInfo reduced(int64_t count, DType dtype = kFloat32, const std::string& text = "") {
  CollectiveInfo info;
  info.sequence = 1;
  info.kind = dist::CollectiveKind::AllReduce;
  info.op = dist::ReduceOp::Sum;
  info.dtype = dtype;
  info.count = count;
  info.text = text;
  return info;
}

CollectiveInfo whole(const std::vector<CollectiveInfo>& parts) { return dist::as_one(parts); }

std::string difference(const CollectiveInfo& a, const CollectiveInfo& b) {
  return dist::how_parts_differ(a, "rank 0", b, "rank 1").value_or("nothing");
}

CollectiveInfo part(uint32_t which, uint32_t of, int64_t count, const std::string& text = "w") {
  CollectiveInfo info = reduced(count, kFloat32, text);
  info.part = which;
  info.parts = of;
  return info;
}

TEST_CASE("parts as one have the elements of all, their sizes, and a number for all that is compared") {
  const CollectiveInfo three = whole({reduced(10), reduced(20), reduced(5)});
  CHECK(three.count == 35);
  CHECK(three.dtype == kFloat32);
  CHECK(three.op == dist::ReduceOp::Sum);
  CHECK(describe(three) == "3 coalesced: 10, 20, 5");
  CHECK(whole({reduced(10), reduced(20), reduced(5)}).matches(three));
  for (const std::vector<CollectiveInfo>& other :
       std::vector<std::vector<CollectiveInfo>>{{reduced(10), reduced(20)},
                                                {reduced(20), reduced(10), reduced(5)},
                                                {reduced(10), reduced(20), reduced(5, kInt32)},
                                                {reduced(10), reduced(20), reduced(5, kFloat32, "w")}})
    CHECK_FALSE(whole(other).matches(three));
  CHECK(describe(whole({reduced(10), reduced(5, kInt64)})) == "2 coalesced: 10 x float32, 5 x int64");
  CHECK(describe(part(2, 3, 5, "")) == "part 2 of 3");
  CHECK(describe(part(2, 3, 5)) == "part 2 of 3: w");
}

TEST_CASE("of many parts the first sizes are listed, and all are compared") {
  std::vector<CollectiveInfo> parts(500, reduced(123456));
  const CollectiveInfo many = whole(parts);
  CHECK(describe(many).ends_with("123456, 123456, ..."));
  CHECK(many.sizes.size() == 8);
  parts.back().count = 7;
  parts[498].count += 123449;
  CHECK(whole(parts).count == many.count);
  CHECK_FALSE(whole(parts).matches(many));
  CHECK(difference(whole(parts), many) == "the 500 parts differ in a size, dtype, operation, root or description");
}

TEST_CASE("what differs in parts is reported, and nothing is reported of collectives by themselves") {
  const CollectiveInfo three = whole({reduced(10), reduced(20), reduced(5)});
  CHECK(difference(three, whole({reduced(10), reduced(20)})) == "rank 0 issues 3 collectives together here, rank 1 2");
  CHECK(difference(three, whole({reduced(10), reduced(21), reduced(5)})) ==
        "part 2 of 3 has 20 elements on rank 0, 21 on rank 1");
  CHECK(difference(reduced(35), three) == "rank 1 issues 3 collectives together here, rank 0 this one by itself");
  CHECK(difference(part(1, 1, 4), reduced(4)) ==
        "rank 0 issues one collective in a coalescing manager here, rank 1 this one by itself");
  CHECK(difference(part(1, 2, 4), part(1, 3, 4)) == "rank 0 issues 2 collectives together here, rank 1 3");
  CHECK(difference(reduced(35), reduced(30, kFloat32, "3 coalesced: 10, 20")) == "nothing");
  CHECK(difference(three, three) == "nothing");
  // A different size in the same part is left to the comparison of single calls.
  CHECK(difference(part(2, 3, 4), part(2, 3, 5)) == "nothing");
}

TEST_CASE("the verdict of ranks whose parts differ says so, with what to do") {
  const std::vector<CollectiveInfo> by_rank{whole({reduced(10), reduced(20)}), whole({reduced(10)})};
  const dist::Verdict verdict = dist::collective_mismatch({.by_rank = by_rank});
  CHECK_MESSAGE(verdict.message.find("rank 0 issues 2 collectives together here, rank 1 1") != std::string::npos,
                verdict.message);
  CHECK(verdict.advice.find("in the coalescing managers of all ranks") != std::string::npos);
}

}  // namespace brigade::test::coalesced_test
