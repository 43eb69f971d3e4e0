// brigade bench ops, autograd, optim.
#pragma once

namespace CLI {
class App;
}

namespace brigade::lab {

void add_bench_micro(CLI::App& bench, int& exit_code);

}  // namespace brigade::lab
