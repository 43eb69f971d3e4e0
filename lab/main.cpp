// The program `brigade`.
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/program.h>

int main(int argc, char** argv) {
  return brigade::lab::run_program(argc, argv, [](brigade::lab::Command& app) {
    brigade::lab::add_demo(app);
    brigade::lab::add_run(app);
    brigade::lab::add_train(app);
    brigade::lab::add_diagnose(app);
    brigade::lab::add_claims(app);
    brigade::lab::add_check(app);
    brigade::lab::add_bench(app);
    brigade::lab::add_explain(app);
    brigade::lab::add_doctor(app);
  });
}
