#include "cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/factory.h>

namespace brigade::test {
namespace {

std::vector<CaseTable>& tables() {
  static std::vector<CaseTable> all;
  return all;
}

}  // namespace

AddCases::AddCases(CaseTable table) { tables().push_back(table); }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const CaseTable table : tables()) {
    for (Case& each : table())
      all.push_back(std::move(each));
  }
  return all;
}

Tensor fixed(const Shape& sizes, uint64_t seed) {
  RandomGenerator generator(seed);
  return rand(sizes, {kFloat64}, &generator);
}

Tensor input(const Shape& sizes, uint64_t seed, bool positive) {
  RandomGenerator generator(seed);
  const Tensor x = rand(sizes, {kFloat64}, &generator) * 1.2 + 0.3;
  const Tensor signs =
      positive ? ones(sizes, {kFloat64}) : gt(rand(sizes, {kFloat64}, &generator), 0.5).to(kFloat64) * 2.0 - 1.0;
  return (x * signs).detach().clone().requires_grad_();
}

}  // namespace brigade::test
