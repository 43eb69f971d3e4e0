// Diagnosis of missing gradients, as data. The network below has two mistakes: a detach() cuts the path to `encoder`,
// and `spare` is never called. In strict mode both ranks get the same error at the end of the same backward, with one
// verdict per cause: which parameters, on which ranks, why, at which line, and what to do. Then the program follows the
// advice, and the same wrapper trains.
#include <brigade/brigade.h>

#include <cstdio>
#include <string>
#include <vector>

using namespace brigade;

struct NetImpl : nn::Module {
  nn::Linear encoder{nullptr}, head{nullptr}, spare{nullptr};
  bool with_mistakes = true;
  NetImpl() {
    encoder = register_module("encoder", nn::Linear(4, 4));
    head = register_module("head", nn::Linear(4, 1));
    spare = register_module("spare", nn::Linear(4, 1));
  }
  Tensor forward(const Tensor& x) {
    Tensor features = relu(encoder(x));
    if (!with_mistakes) return head(features) + spare(features);
    line_of_detach = __LINE__ + 1;
    return head(features.detach());
  }
  int line_of_detach = 0;
};
BRIGADE_MODULE(Net);

// Whether the verdicts match the two mistakes.
bool as_expected(const std::vector<dist::Verdict>& verdicts, int line_of_detach) {
  bool cut = false, not_called = false;
  for (const dist::Verdict& verdict : verdicts) {
    const std::string first = verdict.parameters.empty() ? "" : verdict.parameters[0].name;
    if (verdict.kind != "unused_parameters" || verdict.parameters.size() != 2) return false;
    if (verdict.cause.kind == dist::CauseKind::Detached)
      cut = first == "encoder.weight" && verdict.cause.place.line == static_cast<uint32_t>(line_of_detach);
    if (verdict.cause.kind == dist::CauseKind::ModuleNotCalled) not_called = first == "spare.weight";
  }
  return verdicts.size() == 2 && cut && not_called;
}

void print(const std::vector<dist::Verdict>& verdicts) {
  for (const dist::Verdict& verdict : verdicts) {
    std::printf("%s in backward %d\n", verdict.kind.c_str(), static_cast<int>(verdict.iteration));
    for (const dist::ParameterVerdict& parameter : verdict.parameters)
      std::printf("  parameter  %s, missing on %s\n", parameter.name.c_str(),
                  dist::ranks_in_words(parameter.missing_ranks).c_str());
    const dist::Cause& cause = verdict.cause;
    std::printf("  cause      %s: %s\n", dist::name(cause.kind), cause.text.c_str());
    if (cause.place) std::printf("  at         %s\n", to_string(cause.place).c_str());
    std::printf("  advice     %s\n", verdict.advice.c_str());
  }
}

int main() {
  bool diagnosed[2] = {false, false}, trained[2] = {false, false};
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    const int rank = group->rank();
    Net net;
    dist::DistributedDataParallel<Net> ddp(net, group);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    try {
      ddp(randn({8, 4})).mean().backward();
    } catch (const dist::Diagnosed& error) {  // a ReductionError: every error that carries verdicts is Diagnosed
      if (rank == 0) print(error.verdicts());
      diagnosed[rank] = as_expected(error.verdicts(), net->line_of_detach);
    }
    net->with_mistakes = false;
    ddp(randn({8, 4})).mean().backward();
    optimizer.step();
    trained[rank] = net->encoder->weight.grad().defined() && net->spare->weight.grad().defined();
  });
  std::printf("without the mistakes: %s\n",
              trained[0] && trained[1] ? "every gradient arrived" : "SOMETHING IS MISSING");
  return diagnosed[0] && diagnosed[1] && trained[0] && trained[1] ? 0 : 1;
}
