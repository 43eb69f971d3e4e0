// Collectives are compared as numbers: names and descriptions of any length are distinguished, on every transport.
#include "rank_case.h"

#include <brigade/dist/comm_hooks/comm_hook.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>

#include <string>

namespace brigade::test::identity_cases {
using Group = dist::ProcessGroupPtr;

struct NetWithANameThatIsLongerThanNinetySixBytesAsTheNamesOfGeneratedAndOfTemplatedClassesVeryOftenAreImpl
    : nn::Module {
  nn::Linear fc{nullptr};
  NetWithANameThatIsLongerThanNinetySixBytesAsTheNamesOfGeneratedAndOfTemplatedClassesVeryOftenAreImpl() {
    fc = register_module("fc", nn::Linear(4, 4, false));
  }
  Tensor forward(const Tensor& x) { return fc(x); }
};
BRIGADE_MODULE(NetWithANameThatIsLongerThanNinetySixBytesAsTheNamesOfGeneratedAndOfTemplatedClassesVeryOftenAre);
using LongNamed = NetWithANameThatIsLongerThanNinetySixBytesAsTheNamesOfGeneratedAndOfTemplatedClassesVeryOftenAre;

// Every rank ends in the error of a mismatch that has all `parts`.
void expect_mismatch(const std::vector<Rank>& ranks, const std::vector<std::string>& parts) {
  for (size_t r = 0; r < ranks.size(); ++r) {
    CAPTURE(r);
    CHECK_MESSAGE(ranks[r].text.find("The ranks met in different collectives: rank 0 ") != std::string::npos,
                  ranks[r].error << ": " << ranks[r].text << ranks[r].result);
    for (const std::string& part : parts)
      CHECK_MESSAGE(ranks[r].text.find(part) != std::string::npos, part << " is missing in " << ranks[r].text);
  }
}

void check_long_class_name(const std::string& backend, int ranks) {
  const auto outcome = run_ranks(backend, ranks, [](const Group& group) -> std::string {
    LongNamed a, b;
    dist::DistributedDataParallel first(a, group), second(b, group);
    const Tensor one = first(full({1, 4}, 1.0)).sum();
    const Tensor other = second(full({1, 4}, 1.0)).sum();
    const bool odd = group->rank() == group->size() - 1;
    (odd ? other : one).backward();
    (odd ? one : other).backward();
    return "no error";
  });
  const std::string name =
      "DDP(NetWithANameThatIsLongerThanNinetySixBytesAsTheNamesOfGeneratedAndOfTemplatedClassesVeryOftenAre)";
  expect_mismatch(outcome, {"\"bucket 0 of " + name + "\"", "\"bucket 0 of " + name + "#2\"",
                            "run the backwards of the wrappers in the same order on every rank"});
}
const AddRankCase add_long_class_name("two wrappers of one class with a long name, backwards in another order",
                                      BackendCheck(&check_long_class_name), {.threads = {2, 3}, .shm = {2}});

struct NamedHook final : dist::CommHook {
  explicit NamedHook(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  dist::WorkPtr run(dist::ProcessGroup& group, const dist::GradBucket& bucket, const dist::CollectiveOptions& options,
                    SourceLocation where) override {
    return group.all_reduce(bucket.buffer(), options, where);
  }

 private:
  std::string name_;
};

void check_long_hook_name(const std::string& backend, int ranks) {
  const auto outcome = run_ranks(backend, ranks, [](const Group& group) -> std::string {
    nn::Linear net(4, 4);
    dist::DistributedDataParallel ddp(net, group);
    const bool odd = group->rank() == group->size() - 1;
    ddp.register_comm_hook(std::make_shared<NamedHook>(std::string(200, 'h') + (odd ? "_odd" : "_usual")));
    ddp(full({1, 4}, 1.0)).sum().backward();
    return "no error";
  });
  expect_mismatch(outcome, {std::string(200, 'h') + "_odd", std::string(200, 'h') + "_usual",
                            "register the same communication hook on every rank"});
}
const AddRankCase add_long_hook_name("communication hooks whose names differ at their end",
                                     BackendCheck(&check_long_hook_name), {.threads = {2, 3}, .shm = {2}});

// Also distinguishes texts that are longer than what ranks keep of them.
void check_long_descriptions(const std::string& backend, int ranks) {
  for (const size_t length : {300, 70000}) {
    const auto outcome = run_ranks(backend, ranks, [length](const Group& group) -> std::string {
      const bool odd = group->rank() == group->size() - 1;
      Tensor x = full({4}, 1.0);
      group->all_reduce(x, {.description = std::string(length, 'd')})->wait();
      group->all_reduce(x, {.description = std::string(length, 'd') + (odd ? "odd" : "usual")})->wait();
      return "no error";
    });
    const std::string kept(250, 'd');
    expect_mismatch(outcome, length == 300 ? std::vector<std::string>{kept, "dodd\"", "dusual\""}
                                           : std::vector<std::string>{kept, "in all_reduce(sum) of 4 x float32"});
  }
}
const AddRankCase add_long_descriptions("descriptions that differ at their end", BackendCheck(&check_long_descriptions),
                                        {.threads = {2, 3}, .shm = {2}});

}  // namespace brigade::test::identity_cases
