// brigade bench allreduce.
#pragma once

namespace CLI {
class App;
}

namespace brigade::lab {

void add_bench_allreduce(CLI::App& bench, int& exit_code);

}  // namespace brigade::lab
