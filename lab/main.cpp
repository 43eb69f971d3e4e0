// The program `brigade`.
#include <brigade/core/version.h>
#include <brigade/kernels/instruction_set.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/rank_job.h>

#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  using namespace brigade;
  CLI::App app{"Brigade: autograd and distributed data parallel, from scratch"};
  app.set_version_flag("--version", std::string(version()) + " (" + std::string(commit()) + "), instruction set " +
                                        std::string(kernels::instruction_set()));
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  int exit_code = 0;
  lab::add_demo(app, exit_code);
  lab::add_run(app, exit_code);
  lab::add_train(app, exit_code);
  lab::add_diagnose(app, exit_code);
  lab::add_check(app, exit_code);
  lab::add_bench(app, exit_code);
  lab::add_explain(app, exit_code);
  std::string job;
  CLI::App* rank_job = app.add_subcommand("rank-job", "")->group("");  // hidden: ranks that brigade starts of itself
  rank_job->add_option("name", job)->required();
  rank_job->callback([&] { exit_code = lab::rank_job_main(job); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // 0 for --help and --version, 2 for wrong usage.
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const brigade::ValueError& error) {
    std::cerr << "brigade: " << error.what() << "\n";
    return 2;
  } catch (const brigade::IoError& error) {
    std::cerr << "brigade: " << error.what() << "\n";
    return 3;
  } catch (const brigade::DeviceError& error) {
    std::cerr << "brigade: " << error.what() << "\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "brigade: " << error.what() << "\n";
    return 1;
  }
  return exit_code;
}
