// A user's program whose ranks all run into the same error: for tests of how an error reaches the terminal.
//
//   raise_verdict BACKEND unused|gone|plain uncaught|caught
//
// unused: a parameter gets no gradient (every rank raises); gone: the last rank leaves before a collective (the others
// raise); plain: an error that is not of Brigade. BACKEND: shm, gloo, or threads:RANKS.
#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/nn/nn.h>

#include <iostream>
#include <stdexcept>
#include <string>

using namespace brigade;

namespace {

struct NetImpl : nn::Module {
  nn::Linear used{nullptr}, idle{nullptr};
  NetImpl() {
    used = register_module("used", nn::Linear(4, 2));
    idle = register_module("idle", nn::Linear(4, 2));
  }
  Tensor forward(const Tensor& x) { return used(x); }
};
BRIGADE_MODULE(Net);

void work(const dist::ProcessGroupPtr& group, const std::string& fault) {
  if (fault == "plain") throw std::runtime_error("no such file: labels.bin");
  if (fault == "gone") {
    group->barrier();
    if (group->rank() == group->size() - 1) return;
    group->barrier();
    return;
  }
  Net net;
  dist::DistributedDataParallel ddp(net, group);
  sum(ddp(ones({3, 4}))).backward();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string backend = argv[1];
  const std::string fault = argv[2];
  const auto run = [&] {
    if (backend.starts_with("threads:")) {
      dist::run_threads(std::stoi(backend.substr(8)), [&](dist::ProcessGroupPtr group) { work(group, fault); });
    } else {
      work(dist::init_process_group({.backend = backend}), fault);
    }
  };
  if (std::string(argv[3]) == "uncaught") {
    run();
    return 0;
  }
  try {
    run();
  } catch (const std::exception& error) {
    std::cerr << "training failed: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
