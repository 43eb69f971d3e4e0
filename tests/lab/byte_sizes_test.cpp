// Byte sizes in the syntax of `brigade bench --sizes`.
#include <brigade/lab/bench/benchmark.h>

#include <brigade/core/error.h>

#include <doctest/doctest.h>

namespace brigade::test::byte_sizes_test {
using lab::parse_byte_size;
using lab::parse_byte_sizes;

TEST_CASE("a size is a whole number with K, M or G, powers of 1024") {
  for (const auto& [text, bytes] :
       std::vector<std::pair<std::string, int64_t>>{{"1", 1},
                                                    {"4096", 4096},
                                                    {"512B", 512},
                                                    {"4K", 4096},
                                                    {"4k", 4096},
                                                    {"4KiB", 4096},
                                                    {"3M", 3 << 20},
                                                    {"3MiB", 3 << 20},
                                                    {"2G", int64_t{2} << 30},
                                                    {"2GiB", int64_t{2} << 30},
                                                    {"8589934591G", 8589934591 * (1 << 30)}}) {
    CAPTURE(text);
    CHECK(parse_byte_size(text) == bytes);
  }
  for (const std::string text : {"", "K", "0", "-4K", "4KB", "4 K", "1.5M", "4Kx", "x", "+4", "9223372036854775808",
                                 "8589934592G", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_byte_size(text), ValueError);
  }
}

TEST_CASE("a range goes up to its end by a factor") {
  struct Row {
    std::vector<std::string> words;
    int64_t factor;
    std::vector<int64_t> expected;
  };
  for (const Row& row : std::vector<Row>{{{"4K-64K"}, 2, {4096, 8192, 16384, 32768, 65536}},
                                         {{"4K-64K"}, 4, {4096, 16384, 65536}},
                                         {{"4K-63K"}, 4, {4096, 16384}},
                                         {{"1-5"}, 3, {1, 3}},
                                         {{"4K-64K:x4"}, 2, {4096, 16384, 65536}},
                                         {{"4K-64K:x4", "1-4"}, 3, {4096, 16384, 65536, 1, 3}},
                                         {{"1M-4M:+1M"}, 2, {1 << 20, 2 << 20, 3 << 20, 4 << 20}},
                                         {{"10-35:+10"}, 2, {10, 20, 30}},
                                         {{"10-15:+10"}, 2, {10}},
                                         {{"4-1G:x256"}, 2, {4, 1024, 1 << 18, 1 << 26}},
                                         {{"7M-7M"}, 2, {7 << 20}},
                                         {{"1K", "8-16", "2K"}, 2, {1024, 8, 16, 2048}},
                                         {{"8589934591G-8589934591G"}, 1000, {8589934591 * (1 << 30)}}}) {
    CAPTURE(row.words.front());
    CHECK(parse_byte_sizes(row.words, row.factor) == row.expected);
  }
  for (const std::string word : {"64K-4K", "4K-", "-4K", "4K-8K-16K", "4K--8K", "4K-8K:", "4K-8K:2", "4K-8K:x1",
                                 "4K-8K:x", "4K-8K:x2K", "4K-8K:+0", "4K-8K:+", "4K:x2", "4K:+1-8K"}) {
    CAPTURE(word);
    CHECK_THROWS_AS(parse_byte_sizes({word}, 2), ValueError);
  }
  CHECK_THROWS_AS(parse_byte_sizes({"4K-8K"}, 1), ValueError);
}

TEST_CASE("sizes are at most ten thousand, of one word or of all") {
  CHECK(parse_byte_sizes({"1-10000:+1"}, 2).size() == 10'000);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"1-10001:+1"}, {"1-1000000000:+1"}, {"1-8589934591G:+1"}, {"1-5000:+1", "1-5000:+1", "64K"}}) {
    CAPTURE(words.back());
    CHECK_THROWS_AS(parse_byte_sizes(words, 2), ValueError);
  }
}

TEST_CASE("a size in words") {
  CHECK(lab::byte_size_in_words(3) == "3 B");
  CHECK(lab::byte_size_in_words(65536) == "64 KiB");
  CHECK(lab::byte_size_in_words(3 << 20) == "3 MiB");
  CHECK(lab::byte_size_in_words(int64_t{2} << 30) == "2 GiB");
}

}  // namespace brigade::test::byte_sizes_test
