// Byte sizes as given on a command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brigade::lab {

// "512", "512B", "64K" (or 64KiB), "4M", "1G": K, M and G are powers of 1024. Throws ValueError.
int64_t parse_byte_size(const std::string& text);
// Each word is a size or a range: "4K-64M" (4K, then each size `factor` times the previous one, up to 64M),
// "4K-64M:x4" (by this factor), "1M-8M:+1M" (by this step). Throws ValueError, also for more than 10,000 sizes;
// `factor` is at least 2.
std::vector<int64_t> parse_byte_sizes(const std::vector<std::string>& words, int64_t factor);

// "64 KiB", "3 B"
std::string byte_size_in_words(int64_t bytes);

}  // namespace brigade::lab
