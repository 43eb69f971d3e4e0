// The errors quoted in docs/reference/cookbook.md that no planted fault covers: the programs here print them.
// scripts/check-cookbook.py compares the outputs of planted faults.
#include <brigade/brigade.h>

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <string>

namespace brigade::test::cookbook_test {

// The text on one line, without the folder and line numbers of the places that it names.
std::string squeezed(const std::string& text) {
  const std::string placed =
      std::regex_replace(text, std::regex(R"([\w./-]*cookbook_test\.cpp:\d+)"), "cookbook_test.cpp:LINE");
  const std::string without_lines = std::regex_replace(placed, std::regex(R"(\bline \d+)"), "line LINE");
  return std::regex_replace(without_lines, std::regex(R"(\s+)"), " ");
}

std::string error_of_program(const std::function<void()>& program) {
  try {
    program();
  } catch (const Error& error) {
    return squeezed(error.what());
  }
  return "no error";
}

bool stands_in_cookbook(const std::string& text) {
  std::ifstream file(BRIGADE_SOURCE_DIR "/docs/reference/cookbook.md");
  const std::string cookbook{std::istreambuf_iterator<char>(file), {}};
  return squeezed(cookbook).find(text) != std::string::npos;
}

TEST_CASE("the cookbook prints what a second backward through one graph says") {
  const Tensor w = ones({2}).requires_grad_();
  const std::string said = error_of_program([&] {
    const Tensor loss = sum(w * w);
    loss.backward();
    loss.backward();
  });
  INFO(said);
  CHECK(stands_in_cookbook(said));
}

TEST_CASE("the cookbook prints what a backward after an in-place operation says") {
  const Tensor w = ones({2}).requires_grad_();
  const std::string said = error_of_program([&] {
    const Tensor hidden = exp(w);
    const Tensor loss = sum(hidden * w);
    hidden.add_(ones({2}));
    loss.backward();
  });
  INFO(said);
  CHECK(stands_in_cookbook(said));
}

TEST_CASE("the cookbook prints what a backward of a loss without a graph says") {
  const Tensor w = ones({2}).requires_grad_();
  const std::string said = error_of_program([&] {
    const Tensor loss = sum((w * 2.0).detach());
    loss.backward();
  });
  INFO(said);
  CHECK(stands_in_cookbook(said));
}

TEST_CASE("the cookbook prints what a Fabric in 16-mixed says of a plain backward") {
  dist::Fabric fabric({.accelerator = "cpu", .devices = 1, .precision = "16-mixed"});
  nn::Linear net(2, 1);
  optim::SGD sgd(net->parameters(), {.lr = 0.1});
  auto setup = fabric.setup(net, sgd);
  const std::string said = error_of_program([&] {
    auto& [model, optimizer] = setup;
    const Tensor loss = mean(model(ones({4, 2})));
    loss.backward();
    optimizer.step();
  });
  INFO(said);
  CHECK(stands_in_cookbook(said));
}

}  // namespace brigade::test::cookbook_test
