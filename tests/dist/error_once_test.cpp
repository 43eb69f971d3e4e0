#include <brigade/dist/rendezvous/launch/error_once.h>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace brigade::test::error_once_test {
using dist::ErrorOnce;

using Said = std::vector<std::pair<int, std::string>>;

// The shown lines, as "rank: line", when ranks print the lines of `said` in this order and then end.
std::vector<std::string> shown(ErrorOnce& errors, const Said& said, std::vector<std::string>* brief = nullptr) {
  std::vector<std::string> all;
  int ranks = 0;
  const auto keep = [&](int rank, const ErrorOnce::Lines& lines) {
    for (const std::string& line : lines.shown)
      all.push_back(std::to_string(rank) + ": " + line);
    for (const std::string& line : lines.brief) {
      if (brief) brief->push_back(line);
    }
  };
  for (const auto& [rank, line] : said) {
    keep(rank, errors.line(rank, line));
    ranks = std::max(ranks, rank + 1);
  }
  for (int rank = 0; rank < ranks; ++rank)
    keep(rank, errors.end(rank));
  return all;
}

using Lines = std::vector<std::string>;

TEST_CASE("lines of ranks that have announced nothing pass, alike or not") {
  ErrorOnce errors;
  CHECK_FALSE(errors.expects(0));
  CHECK(shown(errors, {{0, "epoch 1"}, {1, "epoch 1"}, {1, ""}}) == Lines{"0: epoch 1", "1: epoch 1", "1: "});
}

TEST_CASE("an error that three ranks print is shown once, in one piece; the others refer to it") {
  ErrorOnce errors;
  for (const int rank : {0, 1, 2})
    errors.announce(rank, "key", "cause: x\n\nfix: y");
  CHECK(errors.expects(2));
  Lines brief;
  CHECK(shown(errors,
              {{1, "  what():  cause: x"},
               {0, "  what():  cause: x"},
               {1, ""},
               {0, ""},
               {0, "fix: y"},
               {0, "Aborted"},
               {1, "fix: y."},
               {2, "failed: cause: x"},
               {2, ""},
               {2, "fix: y"}},
              &brief) == Lines{"0:   what():  cause: x", "0: ", "0: fix: y", "0: Aborted",
                               "1:   what():  (the same error as on rank 0, above).",
                               "2: failed: (the same error as on rank 0, above)"});
  CHECK(brief ==
        Lines{"  what():  (the error above)", "Aborted", "  what():  (the error above).", "failed: (the error above)"});
}

TEST_CASE("errors of one line, with something around them; the same error said twice by one rank") {
  ErrorOnce errors;
  errors.announce(0, "key", "rank 1 left");
  errors.announce(2, "key", "rank 1 left");
  CHECK(shown(errors, {{0, "[error: rank 1 left]"}, {2, "[error: rank 1 left]"}, {0, "again: rank 1 left"}}) ==
        Lines{"0: [error: rank 1 left]", "2: [error: (the same error as on rank 0, above)]",
              "0: again: (the same error as on rank 0, above)"});
}

TEST_CASE("errors with the same key are the same, whatever their words; others are shown each") {
  ErrorOnce errors;
  errors.announce(0, "lost", "rank 1 left; waited 0.3 s");
  errors.announce(2, "lost", "rank 1 left; waited 0.4 s");
  errors.announce(2, "other", "rank 2 is late");
  CHECK(shown(errors, {{0, "rank 1 left; waited 0.3 s"}, {2, "rank 1 left; waited 0.4 s"}, {2, "rank 2 is late"}}) ==
        Lines{"0: rank 1 left; waited 0.3 s", "2: (the same error as on rank 0, above)", "2: rank 2 is late"});
}

TEST_CASE("lines that only begin like an error pass as they are") {
  ErrorOnce errors;
  for (const int rank : {0, 1}) {
    errors.announce(rank, "first", "cause: x\nnumber 1\nfix: y");
    errors.announce(rank, "second", "cause: x\nnumber 2\nfix: y");
  }
  // Rank 0 prints the second error; rank 1 is cut off in the middle of it, so its lines are shown too.
  CHECK(shown(errors, {{0, "cause: x"},
                       {0, "something else"},
                       {0, "cause: x"},
                       {0, "cause: x"},
                       {0, "number 2"},
                       {0, "fix: y"},
                       {1, "cause: x"},
                       {1, "number 2"}}) == Lines{"0: cause: x", "0: something else", "0: cause: x", "0: cause: x",
                                                  "0: number 2", "0: fix: y", "1: cause: x", "1: number 2"});
}

TEST_CASE("of a rank that announces without end the last errors are known") {
  ErrorOnce errors;
  for (int i = 0; i < 100; ++i) {
    for (const int rank : {0, 1})
      errors.announce(rank, std::to_string(i), "error " + std::to_string(i) + "!");
  }
  CHECK(shown(errors, {{0, "error 1!"}, {1, "error 1!"}, {0, "error 99!"}, {1, "error 99!"}}) ==
        Lines{"0: error 1!", "1: error 1!", "0: error 99!", "1: (the same error as on rank 0, above)"});
}

}  // namespace brigade::test::error_once_test
