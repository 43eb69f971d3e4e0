// Graphs in DOT: what nodes are labeled with, and the cuts recorded by the tape.
#include <brigade/autograd/functional.h>
#include <brigade/autograd/graph_picture.h>
#include <brigade/autograd/tape.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

namespace brigade::test::graph_picture_test {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

struct TapeOn {
  TapeOn() { autograd::Tape::enable(); }
  ~TapeOn() { autograd::Tape::disable(); }
};

}  // namespace

TEST_CASE("a picture has each operation once, leaves by name, shapes and lines") {
  const Tensor x = ones({2, 3}, kFloat64).requires_grad_();
  const Tensor w = ones({3}).requires_grad_();
  const Tensor y = exp(x);
  const unsigned line = std::source_location::current().line() + 1;
  const Tensor loss = sum(y * y * w);
  const std::string dot = autograd::to_dot(loss, {.names = {{"encoder.x", x}}});
  CHECK(dot.starts_with("digraph autograd {"));
  CHECK(count(dot, "label=\"exp\\n") == 1);
  CHECK(count(dot, "label=\"mul\\n") == 2);
  CHECK(dot.find("autograd/graph_picture_test.cpp:" + std::to_string(line)) != std::string::npos);
  CHECK(count(dot, "encoder.x\\nfloat64 [2, 3]") == 1);
  CHECK(count(dot, "leaf\\nfloat32 [3]") == 1);
  // x -> exp, exp -> mul twice, mul -> mul, w -> mul, mul -> sum, sum -> root
  CHECK(count(dot, " -> ") == 7);
  CHECK(autograd::to_dot(loss, {.locations = false}).find(".cpp") == std::string::npos);
}

TEST_CASE("cuts are in the picture when a tape is on") {
  const TapeOn tape;
  const Tensor x = ones({2}, kFloat64).requires_grad_();
  const Tensor w = ones({2}, kFloat64).requires_grad_();
  const Tensor hidden = exp(w);
  const unsigned detached = std::source_location::current().line() + 1;
  const Tensor stopped = hidden.detach();
  Tensor quiet;
  unsigned guard = 0;
  {
    guard = std::source_location::current().line() + 1;
    const NoGradGuard no_grad;
    quiet = w * 3.0;
  }
  const std::string dot = autograd::to_dot(sum(x * stopped + quiet), {.names = {{"w", w}}});
  CHECK(dot.find("cut: detach()\\nautograd/graph_picture_test.cpp:" + std::to_string(detached)) != std::string::npos);
  CHECK(dot.find("cut: no_grad\\nmul\\nautograd/graph_picture_test.cpp:" + std::to_string(guard)) != std::string::npos);
  CHECK(count(dot, "label=\"exp\\n") == 1);  // the part before the cut
  CHECK(count(dot, "shape=octagon") == 2);
  CHECK(count(dot, "w\\nfloat64 [2]") == 1);
}

TEST_CASE("a root that was cut off shows why") {
  const TapeOn tape;
  const Tensor x = ones({2}, kFloat64).requires_grad_();
  const std::string dot = autograd::to_dot((x * 2.0).detach());
  CHECK(count(dot, "cut: detach()") == 1);
  CHECK(dot.find("-> root0") != std::string::npos);
  CHECK_THROWS_AS(autograd::to_dot(Tensor()), AutogradError);
}

TEST_CASE("graphviz draws the picture, and its absence is named") {
  const Tensor x = ones({2}).requires_grad_();
  const std::string dot = autograd::to_dot(sum(exp(x)));
  const std::string path =
      (std::filesystem::temp_directory_path() / ("picture" + std::to_string(getpid()) + ".svg")).string();
  const bool installed = std::system("command -v dot > /dev/null 2>&1") == 0;
  if (installed) {
    autograd::write_svg(dot, path);
    std::ifstream in(path);
    const std::string svg((std::istreambuf_iterator<char>(in)), {});
    CHECK(svg.find("<svg") != std::string::npos);
    CHECK(svg.find(">exp<") != std::string::npos);
    CHECK_THROWS_WITH_AS(autograd::write_svg("no graph", path), doctest::Contains("dot failed to write"), ValueError);
    std::filesystem::remove(path);
  } else {
    CHECK_THROWS_WITH_AS(autograd::write_svg(dot, path), doctest::Contains("install graphviz"), ValueError);
  }
}

}  // namespace brigade::test::graph_picture_test
