// The commands of the program `brigade`; each adds its subcommand and, when it runs, sets the exit status.
#pragma once

namespace CLI {
class App;
}

namespace brigade::lab {

void add_demo(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_train(CLI::App& app, int& exit_code);
void add_diagnose(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);

}  // namespace brigade::lab
