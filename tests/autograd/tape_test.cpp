#include <brigade/autograd/functional.h>
#include <brigade/autograd/listener.h>
#include <brigade/autograd/tape.h>
#include <brigade/autograd/tape_query.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>

namespace brigade::test::tape_test {
using autograd::BackwardOnTape;
using autograd::Cut;
using autograd::Fate;
using autograd::Tape;

namespace {

struct TapeOn {
  TapeOn() { Tape::enable(); }
  ~TapeOn() { Tape::disable(); }
};

Tensor leaf() { return ones({2}).requires_grad_(); }

Fate fate_of(const Tensor& parameter, const Tensor& root) {
  return BackwardOnTape(*Tape::current(), std::span(&root, 1)).trace(parameter.id());
}

auto is_at(const std::string& path) {
  return [path](const autograd::ModuleCall& call) { return *call.path == path; };
}

}  // namespace

TEST_CASE("the tape is off unless someone asks, and holds no tensor") {
  CHECK(Tape::current() == nullptr);
  const TapeOn on;
  const Tensor x = leaf();
  const uint32_t references = x.use_count();
  { const Tensor y = x.detach() * 2.0; }
  CHECK(Tape::current()->records().size() == 2);
  CHECK(x.use_count() == references);
}

TEST_CASE("a record knows its operation, its line, its module and its inputs and outputs") {
  const TapeOn on;
  const Tensor x = leaf();
  const autograd::ScopeGuard outer(autograd::intern("net"), "Net", SourceLocation::current());
  const autograd::ScopeGuard inner(autograd::intern("net.fc"), "Linear", SourceLocation::current());
  const Tensor y = exp(x);
  const auto line = __LINE__ - 1;
  const Tape::Record& record = Tape::current()->records().back();
  CHECK(std::string(record.op) == "exp");
  CHECK(record.where.line() == line);
  CHECK(Tape::current()->inputs(record)[0] == x.id());
  CHECK(Tape::current()->outputs(record)[0] == y.id());
  CHECK(*autograd::module_of(*Tape::current(), record)->path == "net.fc");
  const BackwardOnTape backward(*Tape::current(), std::span(&y, 1));
  CHECK(backward.find_call({}, is_at("net")) != nullptr);
  CHECK(backward.find_call({}, is_at("other")) == nullptr);
}

TEST_CASE("the fate of a parameter: not used, dropped, cut, reached") {
  const TapeOn on;
  const Tensor p = leaf();
  const Tensor other = leaf();
  CHECK(fate_of(p, other.sum()).kind == Fate::Kind::NotUsed);

  const Tensor dropped = exp(p);
  Fate fate = fate_of(p, other.sum());
  CHECK(fate.kind == Fate::Kind::Dropped);
  CHECK(std::string(fate.record->op) == "exp");
  CHECK(fate_of(p, dropped.sum()).kind == Fate::Kind::Reached);

  fate = fate_of(p, (exp(p).detach() * other).sum());
  CHECK(fate.kind == Fate::Kind::Cut);
  CHECK(fate.record->cut == Cut::Detach);
  CHECK(fate.record->where.line() == __LINE__ - 3);

  Tensor quiet;
  {
    const NoGradGuard no_grad;
    quiet = p * 2.0;
  }
  fate = fate_of(p, (quiet * other).sum());
  CHECK(fate.record->cut == Cut::NoGrad);
  CHECK(fate.record->cut_at.line() == __LINE__ - 5);

  fate = fate_of(p, (gt(p, 0.0).to(kFloat32) * other).sum());
  CHECK(fate.record->cut == Cut::NotDifferentiable);
  CHECK(std::string(fate.record->op) == "gt");
}

TEST_CASE("one live path is enough, whatever else is cut") {
  const TapeOn on;
  const Tensor p = leaf();
  CHECK(fate_of(p, (p.detach() * p).sum()).kind == Fate::Kind::Reached);
}

TEST_CASE("a value read as a number leaves the graph") {
  const TapeOn on;
  const Tensor p = ones({}).requires_grad_();
  const Tensor other = leaf();
  const Fate fate = fate_of(p, (other * p.item()).sum());
  CHECK(fate.kind == Fate::Kind::Cut);
  CHECK(fate.record->cut == Cut::ReadAsNumber);
}

TEST_CASE("values read as a vector leave the graph, at the line that reads them") {
  const TapeOn on;
  const Tensor p = leaf();
  const Tensor other = leaf();
  const auto values = p.to_vector<double>();
  const uint32_t line = __LINE__ - 1;
  const Fate fate = fate_of(p, (other * values[0]).sum());
  CHECK(fate.kind == Fate::Kind::Cut);
  CHECK(fate.record->cut == Cut::ReadAsNumber);
  CHECK(std::string(fate.record->op) == "to_vector");
  CHECK(fate.record->where.line() == line);
}

TEST_CASE(
    "a use before an earlier backward is reported as such, and a forward used by two backwards is still known to the "
    "second") {
  const TapeOn on;
  const Tensor p = leaf();
  const Tensor other = leaf();
  const Tensor features = exp(p);
  (features * other).sum().backward();
  const Fate cut = fate_of(p, (features.detach() * other).sum());
  CHECK(cut.kind == Fate::Kind::Cut);
  const Fate unused = fate_of(p, other.sum());
  CHECK(unused.kind == Fate::Kind::NotUsed);
  CHECK(unused.other_use.has_value());
}

TEST_CASE("the tape forgets what only old backwards could use") {
  const TapeOn on;
  const Tensor p = leaf();
  for (int i = 0; i < 100; ++i) {
    const autograd::ScopeGuard scope(autograd::intern("net"), "Net", SourceLocation::current());
    exp(p).sum().backward();
  }
  CHECK(Tape::current()->records().size() <= 2 * (Tape::kBackwards + 1));
  CHECK(Tape::current()->calls().size() <= Tape::kBackwards + 2);
  CHECK(std::string(Tape::current()->records().back().op) == "sum");
}

TEST_CASE("a forward that never goes backward does not grow the tape without end, and tracing still works after it") {
  const TapeOn on;
  const Tensor p = leaf();
  exp(p).sum().backward();
  const NoGradGuard no_grad;
  for (size_t i = 0; i < Tape::kMaxRecords + 1000; ++i)
    p.detach();
  CHECK(Tape::current()->records().size() <= Tape::kMaxRecords);
  const EnableGradGuard enabled;
  CHECK(fate_of(p, (exp(p).detach() * leaf()).sum()).kind == Fate::Kind::Cut);
  exp(p).sum().backward();
  CHECK(fate_of(p, leaf().sum()).kind == Fate::Kind::NotUsed);
}

TEST_CASE("a root without history is explained") {
  const TapeOn on;
  const Tensor p = leaf();
  const Tensor root = exp(p).detach().sum();
  std::string text;
  try {
    root.backward();
  } catch (const AutogradError& error) {
    text = error.what();
  }
  CHECK(text.find("does not require grad and does not have a grad_fn: cut by detach() at autograd/tape_test.cpp:") !=
        std::string::npos);
}

TEST_CASE("a backward is on the tape when it is recorded, and else not") {
  const TapeOn on;
  const Tensor x = leaf();
  const Tensor y = exp(x * 2.0).sum();
  const size_t before = Tape::current()->records().size();
  y.backward({.retain_graph = true});
  CHECK(Tape::current()->records().size() == before);
  x.set_grad(Tensor());
  y.backward({.create_graph = true});
  CHECK(Tape::current()->records().size() > before);
  x.set_grad(Tensor());  // the gradient has a history that owns x
}

// A static object may disable the tape after the thread's thread_local objects are destroyed.
TEST_CASE("a static object may switch the tape off") {
  struct Wrapper {
    Wrapper() { Tape::enable(); }
    ~Wrapper() {
      Tape::disable();
      Tape::enable();
      Tape::disable();
    }
  };
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    static const Wrapper wrapper;
    std::exit(Tape::current() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("what only reads a result beside the loss has not dropped it") {
  const TapeOn on;
  const Tensor p = leaf();
  const Tensor other = leaf();
  const Tensor side = exp(p).sum();
  const auto line = __LINE__ - 1;
  side.item();
  side.detach() * 2.0;
  {
    const NoGradGuard no_grad;
    side * 3.0;
  }
  const Fate fate = fate_of(p, other.sum());
  CHECK(fate.kind == Fate::Kind::Dropped);
  CHECK(std::string(fate.record->op) == "sum");
  CHECK(fate.record->where.line() == line);
}

TEST_CASE("of several cut paths one with a single cut is reported") {
  const TapeOn on;
  const Tensor p = leaf();
  const Tensor other = leaf();
  const Tensor twice = exp(gt(exp(p).detach().requires_grad_(), 0.0).to(kFloat32));
  const Tensor once = exp(p).detach();
  const auto line = __LINE__ - 1;
  const Fate fate = fate_of(p, ((twice + once) * other).sum());
  CHECK(fate.kind == Fate::Kind::Cut);
  CHECK(fate.record->cut == Cut::Detach);
  CHECK(fate.record->where.line() == line);
}

TEST_CASE("a backward that has ended is traced as it was") {
  const TapeOn on;
  const Tensor p = leaf();
  const Tensor other = leaf();
  {
    const autograd::ScopeGuard scope(autograd::intern("net"), "Net", SourceLocation::current());
    exp(p).sum().backward();
  }
  {
    const autograd::ScopeGuard scope(autograd::intern("net"), "Net", SourceLocation::current());
    (exp(p).detach() * other).sum().backward();
  }
  const uint64_t first = Tape::current()->backwards().back().number;
  other.sum().backward();
  const uint64_t second = Tape::current()->backwards().back().number;
  exp(p);
  const BackwardOnTape of_first(*Tape::current(), first);
  const Fate cut = of_first.trace(p.id());
  CHECK(cut.kind == Fate::Kind::Cut);
  CHECK(cut.record->cut == Cut::Detach);
  CHECK(BackwardOnTape(*Tape::current(), second).trace(p.id()).kind == Fate::Kind::Dropped);
  CHECK(BackwardOnTape(*Tape::current(), second + 100).trace(p.id()).kind == Fate::Kind::NotUsed);
  CHECK(of_first.find_call(cut, is_at("net")) != nullptr);
}

TEST_CASE("a plan knows whether it goes through what was recorded between two moments") {
  struct Seen final : autograd::Listener {
    uint64_t from = 0, to = 0;
    bool holds = false;
    void on_plan(const autograd::Plan& plan) override { holds = plan.holds_recorded(from, to); }
    void on_grad_ready(uint32_t, bool) override {}
    void on_finish(const autograd::Plan&) override {}
    void on_error(const autograd::Plan*, std::exception_ptr) noexcept override {}
  };
  const auto seen = std::make_shared<Seen>();
  autograd::add_listener(seen);
  const Tensor p = leaf();
  const Tensor before = exp(p);
  seen->from = autograd::recorded_nodes();
  const Tensor between = exp(before);
  seen->to = autograd::recorded_nodes();
  const Tensor after = between.detach() * p;
  after.sum().backward();
  CHECK_FALSE(seen->holds);
  exp(before).sum().backward({.retain_graph = true});
  CHECK_FALSE(seen->holds);
  exp(between).sum().backward();
  CHECK(seen->holds);
}

TEST_CASE("a backward of something else does not end what is known of a use") {
  const TapeOn on;
  const Tensor p = leaf();
  const Tensor other = leaf();
  const Tensor features = exp(p);
  (features.detach() * other).sum().backward();
  const Fate dropped = fate_of(p, other.sum());
  CHECK(dropped.kind == Fate::Kind::Dropped);
  CHECK(std::string(dropped.record->op) == "exp");
  features.sum().backward();
  const Fate unused = fate_of(p, other.sum());
  CHECK(unused.kind == Fate::Kind::NotUsed);
  CHECK(std::string(unused.other_use->op) == "exp");
}

}  // namespace brigade::test::tape_test
