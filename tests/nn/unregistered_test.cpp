// A module that is used in another module's forward but registered nowhere: the warning, and when there must be none.
#include <brigade/autograd/grad_mode.h>
#include <brigade/core/warning.h>
#include <nn/models.h>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace brigade::test::unregistered_test {
namespace {

// Collects the warnings reported during its lifetime.
class Told {
 public:
  Told() : before_(set_warning_handler([this](const Warning& warning) { warnings.push_back(warning); })) {}
  ~Told() { set_warning_handler(before_); }
  std::vector<Warning> warnings;

 private:
  std::function<void(const Warning&)> before_;
};

constexpr int kMadeAt = __LINE__ + 3;
struct ForgetfulImpl : nn::Module {
  nn::Linear a{nullptr};
  nn::Linear b{nn::Linear(4, 4)};
  ForgetfulImpl() { a = register_module("a", nn::Linear(4, 4)); }
  Tensor forward(const Tensor& x) { return b(a(x)); }
};
BRIGADE_MODULE(Forgetful);

// Uses a module that another module owns.
struct BorrowerImpl : nn::Module {
  nn::Linear own{nullptr};
  nn::Linear borrowed{nullptr};
  explicit BorrowerImpl(nn::Linear other) : borrowed(std::move(other)) {
    own = register_module("own", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) { return borrowed(own(x)); }
};
BRIGADE_MODULE(Borrower);

}  // namespace

TEST_CASE("a child that was never registered is warned of once, with the lines where it was made and called") {
  const Told told;
  Forgetful net;
  net(ones({1, 4}));
  net(ones({1, 4}));
  REQUIRE(told.warnings.size() == 1);
  const std::string& message = told.warnings[0].message;
  CAPTURE(message);
  CHECK(message.find("The module Linear, made at ") == 0);
  // For a member initializer, the standard allows either its own line or that of the constructor.
  const auto made_at = [&](int line) {
    return message.find("unregistered_test.cpp:" + std::to_string(line) + ", is called") != std::string::npos;
  };
  CHECK((made_at(kMadeAt) || made_at(kMadeAt + 1)));
  CHECK(message.find("is called in the forward of Forgetful (") != std::string::npos);
  CHECK(message.find("unregistered_test.cpp:" + std::to_string(kMadeAt + 2) + ")") != std::string::npos);
  CHECK(message.find("its 2 parameters") != std::string::npos);
  CHECK(told.warnings[0].advice.find("register_module(") != std::string::npos);
}

TEST_CASE("nobody is warned of a module that is accounted for, or that is not trained") {
  const Told told;
  const Tensor x = ones({1, 4});
  SUBCASE("registered") { Block()(ones({1, 3})); }
  SUBCASE("registered in another tree") {
    nn::Sequential owner;
    nn::Linear shared(4, 4);
    owner->push_back(shared);
    Borrower net(shared);
    net(x);
  }
  SUBCASE("its parameters were asked for by themselves, for an optimizer of its own") {
    nn::Linear shared(4, 4);
    const std::vector<Tensor> moved = shared->parameters();
    Borrower net(shared);
    net(x);
  }
  SUBCASE("frozen") {
    nn::Linear teacher(4, 4);
    teacher->requires_grad_(false);
    Borrower net(teacher);
    net(x);
  }
  SUBCASE("under no_grad") {
    const NoGradGuard no_grad;
    Borrower net{nn::Linear(4, 4)};
    net(x);
  }
  SUBCASE("called beside, not inside") {
    nn::Linear alone(4, 4);
    alone(x);
  }
  CHECK(told.warnings.empty());
}

TEST_CASE("moving or freezing a part of a hidden module does not account for it") {
  const Told told;
  nn::Linear hidden(4, 4);
  hidden->to(kFloat64);
  hidden->to(kFloat32);
  hidden->zero_grad();
  Borrower net(hidden);
  {
    const NoGradGuard no_grad;
    net(ones({1, 4}));
  }
  CHECK(told.warnings.empty());
  net(ones({1, 4}));
  CHECK(told.warnings.size() == 1);
}

TEST_CASE("a handle knows the line where it was made, whatever its arguments") {
  const auto line = [](const auto& handle) { return handle->made_at().line(); };
  nn::Linear two(4, 4);
  CHECK(line(two) == __LINE__ - 1);
  nn::Linear options({.in_features = 4, .out_features = 2});
  CHECK(line(options) == __LINE__ - 1);
  nn::Conv2d braces(1, 2, {3, 3}, {.padding = 1});
  CHECK(line(braces) == __LINE__ - 1);
  nn::LayerNorm norm({4, 2});
  CHECK(line(norm) == __LINE__ - 1);
  nn::Sequential empty;
  CHECK(line(empty) == __LINE__ - 1);
  Block user;
  CHECK(line(user) == __LINE__ - 1);
  nn::Linear copy = two;
  CHECK(line(copy) == line(two));
  CHECK(line(std::make_shared<nn::LinearImpl>(2, 2)) == 0);
}

}  // namespace brigade::test::unregistered_test
