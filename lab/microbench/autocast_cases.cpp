// The cost of an autocast region for an operation that casts nothing: outside of a region, inside, and inside of
// one that is not enabled (which shows the noise).
#include <brigade/amp/autocast.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/microbench/micro_case.h>

#include <optional>

namespace brigade::lab {
namespace {

struct Question {
  std::string name, dtype;
  std::function<Tensor()> run;
};

// Inputs already have the dtype that the rule asks for, so that only looking up the rule is measured.
std::vector<Question> questions() {
  const Tensor lower = full({4, 4}, 0.25, kBFloat16), wide = full({4, 4}, 0.25, kFloat32);
  const Tensor weight = full({4, 4}, 0.25, kBFloat16).requires_grad_();
  return {
      {"add, in no list", "float32", [=] { return add(wide, wide); }},
      {"softmax, in CUDA's list only", "bfloat16", [=] { return softmax(lower, -1); }},
      {"mm, lower precision", "bfloat16", [=] { return mm(lower, lower); }},
      {"mm with a weight, lower precision", "bfloat16", [=] { return mm(lower, weight); }},
      {"linear, lower precision", "bfloat16", [=] { return linear(lower, lower, {}); }},
      {"mse_loss, float32", "float32", [=] { return mse_loss(wide, wide); }},
      {"trace, float32", "float32", [=] { return trace(wide); }},
      {"index_copy, widest", "float32",
       [=, rows = zeros({1}, kInt64), row = full({1, 4}, 1.0, kFloat32)] { return index_copy(wide, 0, rows, row); }},
  };
}

// `enabled`: nullopt for no region at all.
MicroCase autocast_case(const Question& question, const std::string& words, std::optional<bool> enabled) {
  const std::string name = "autocast, " + question.name + ": ";
  return {.suite = "amp",
          .name = name + words,
          .dtype = question.dtype,
          .prepare = [run = question.run, enabled]() -> std::function<double()> {
            return [sample = repeated([run] { run(); }), enabled] {
              std::optional<amp::autocast> region;
              if (enabled) region.emplace(kCPU, kBFloat16, *enabled);
              return sample();
            };
          },
          .beside = enabled ? name + "outside" : ""};
}

std::vector<MicroCase> cases() {
  std::vector<MicroCase> all;
  for (const Question& question : questions()) {
    all.push_back(autocast_case(question, "outside", {}));
    all.push_back(autocast_case(question, "inside", true));
    all.push_back(autocast_case(question, "inside, not enabled", false));
  }
  return all;
}

const AddMicroCases add_autocast_cases(&cases);

}  // namespace
}  // namespace brigade::lab
