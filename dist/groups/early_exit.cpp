// An exit handler that turns a premature exit(0) into status 1.
#include <brigade/dist/groups/early_exit.h>

#include <brigade/autograd/detail/backward_under_way.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace brigade::dist {

namespace {

std::atomic<int> jobs_of_threads{0};

void look_at_exit(int status, void*) {
  if (status != 0) return;
  const bool of_threads = jobs_of_threads.load() > 0;
  if (!of_threads && !autograd::detail::backward_elsewhere()) return;
  std::fputs(of_threads
                 ? "brigade: exit(0) was called before the ranks of this process, which are threads, had ended; it "
                   "ends with status 1. Return from the function that run_threads calls instead\n"
                 : "brigade: exit(0) was called while a backward ran on another thread, which is lost; the process "
                   "ends with status 1. Let the training loop end first, or call exit with a status that says why\n",
             stderr);
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace

void fail_early_exits() noexcept { [[maybe_unused]] static const int once = on_exit(look_at_exit, nullptr); }

RanksAreThreads::RanksAreThreads() noexcept {
  fail_early_exits();
  jobs_of_threads.fetch_add(1);
}

RanksAreThreads::~RanksAreThreads() { jobs_of_threads.fetch_sub(1); }

}  // namespace brigade::dist
