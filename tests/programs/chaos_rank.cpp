// A small training whose rank FAULTY meets FAULT in step STEP at PLACE: what tests/chaos/random_faults.py starts.
//
//   chaos_rank BACKEND none|kill|stop|pause|exit0|exit3|abort|throw|slow|close|memory|disk FAULTY STEP PLACE
//
// BACKEND: shm, gloo, hosts, or threads:RANKS. PLACE: forward, hook (of a gradient), collective (started, not waited
// for). Rank 0 prints "done" and the sum of the weights, exactly; it does not depend on which rank is slow.
#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/sgd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace brigade;
using namespace std::chrono_literals;

namespace {

// A program may give its networks this name after `using namespace brigade`.
struct Generator : nn::Module {};
static_assert(std::is_base_of_v<nn::Module, Generator>);

struct Plan {
  std::string backend, fault, place;
  int rank = 0, step = 0;
};

// Stops this process; a child resumes it.
void pause_process() {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    usleep(300'000);
    kill(parent, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
}

void close_sockets() {
  for (int descriptor = 3; descriptor < 256; ++descriptor) {
    struct stat status {};
    if (fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode)) close(descriptor);
  }
}

void exhaust_memory() {
  const rlimit bound{1 << 20, 1 << 20};
  setrlimit(RLIMIT_AS, &bound);
  zeros({1 << 26});
}

void fill_disk() {
  std::FILE* full = std::fopen("/dev/full", "w");
  if (full == nullptr) throw std::runtime_error("cannot open /dev/full");
  std::fputs("loss\n", full);
  if (std::fclose(full) != 0) throw std::runtime_error("cannot write the log");
}

void meet(const Plan& plan) {
  if (plan.fault == "kill") raise(SIGKILL);
  if (plan.fault == "stop") raise(SIGSTOP);
  if (plan.fault == "pause") pause_process();
  if (plan.fault == "exit0") std::_Exit(0);
  if (plan.fault == "exit3") std::_Exit(3);
  if (plan.fault == "abort") std::abort();
  if (plan.fault == "throw") throw std::runtime_error("planted on rank " + std::to_string(plan.rank));
  if (plan.fault == "slow") std::this_thread::sleep_for(300ms);
  if (plan.fault == "close") close_sockets();
  if (plan.fault == "memory") exhaust_memory();
  if (plan.fault == "disk") fill_disk();
}

// The time-out of collectives. Only the time-out finds a rank that is stopped or has closed its sockets; any other
// fault is reported, however long a busy machine takes.
std::chrono::seconds timeout_for(const Plan& plan) { return plan.fault == "stop" || plan.fault == "close" ? 4s : 120s; }

void train(const dist::ProcessGroupPtr& group, const Plan& plan) {
  manual_seed(0);
  nn::Linear net(8, 4);
  dist::DistributedDataParallel<nn::Linear> ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.05});
  int step = 0;
  const auto at = [&](const std::string& place) {
    if (group->rank() == plan.rank && step == plan.step && place == plan.place) meet(plan);
  };
  net->weight.register_hook([&](const Tensor& gradient) {
    at("hook");
    return gradient;
  });
  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  for (; step < 6; ++step) {
    const Tensor x = randn({16, 8});
    optimizer.zero_grad();
    at("forward");
    const Tensor loss = sum(ddp(x));
    loss.backward();
    optimizer.step();
    const Tensor mean = loss.detach().clone();
    const dist::WorkPtr work = group->all_reduce(mean);
    at("collective");
    work->wait();
  }
  group->barrier();
  if (group->rank() == 0) std::printf("done %a\n", static_cast<double>(sum(net->weight.detach()).item<float>()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const Plan plan{argv[1], argv[2], argv[5], std::stoi(argv[3]), std::stoi(argv[4])};
  if (plan.backend.starts_with("threads:")) {
    dist::run_threads(
        std::stoi(plan.backend.substr(8)), [&](const dist::ProcessGroupPtr& group) { train(group, plan); },
        timeout_for(plan));
  } else {
    // Neighbouring ranks count as different hosts.
    const char* rank = std::getenv("RANK");
    if (plan.backend == "hosts" && rank != nullptr) {
      setenv("BRIGADE_HOST_ID", std::stoi(rank) % 2 == 0 ? "even" : "odd", 1);
    }
    // Processes start as late as the machine lets them.
    train(dist::init_process_group({.backend = plan.backend, .timeout = timeout_for(plan), .meeting_timeout = 120s}),
          plan);
  }
}
