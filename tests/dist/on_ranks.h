// Helpers that run a case on ranks, and check the result of each rank.
#pragma once

#include "processes.h"

#include <brigade/core/tensor.h>

#include <core/error_of.h>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::test {

// Checks that no rank failed, and that each returned "" and not the first thing that was wrong.
inline void expect_all_well(const std::vector<Rank>& ranks) {
  for (size_t r = 0; r < ranks.size(); ++r) {
    CAPTURE(r);
    CHECK_MESSAGE(ranks[r].error == "", ranks[r].error << ": " << ranks[r].text);
    CHECK(ranks[r].result == "");
    CHECK_FALSE(ranks[r].hung);
    CHECK(ranks[r].signal == 0);
  }
}
// Runs `body` on every rank; it returns "", or what was wrong.
inline void expect_well(const std::string& backend, int ranks, const Body& body) {
  expect_all_well(run_ranks(backend, ranks, body));
}

using BackendCheck = std::function<void(const std::string& backend, int ranks)>;

inline void on(const std::string& backend, const std::vector<int>& sizes, const BackendCheck& check) {
  for (const int ranks : sizes) {
    CAPTURE(backend);
    CAPTURE(ranks);
    check(backend, ranks);
  }
}
inline void on_threads(const BackendCheck& check) { on("threads", {2, 3, 4}, check); }

// The bytes of all tensors, to compare bit for bit.
inline std::string bits_of(const std::vector<Tensor>& tensors) {
  std::string bits;
  for (const Tensor& tensor : tensors)
    bits.append(static_cast<const char*>(tensor.raw_data()), tensor.nbytes());
  return bits;
}

// Runs `body`, which must throw an E whose text contains all `parts`; "", or what was wrong.
template <class E, class F>
std::string expect_error(F&& body, const std::vector<std::string>& parts) {
  try {
    body();
  } catch (const E& error) {
    const std::string text = with_whole_places(error.what());
    for (const std::string& part : parts) {
      if (text.find(part) == std::string::npos) return "'" + part + "' is missing in: " + text;
    }
    return "";
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "nothing was thrown";
}

}  // namespace brigade::test
