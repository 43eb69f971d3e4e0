// The program `brigade`.
#include <brigade/core/error.h>
#include <brigade/core/version.h>
#include <brigade/kernels/instruction_set.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/printable.h>
#include <brigade/lab/rank_job.h>

#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>

namespace {

// In one piece: ranks share standard error.
void tell(const std::string& text) { std::cerr << "brigade: " + text + "\n"; }

// A full disk or a closed pipe must not pass for success.
int with_output_written(int status, const brigade::lab::Printable& output) {
  std::cout.flush();
  if (std::cout.good()) return status;
  tell(std::string("not all of the output could be written to standard output: ") + std::strerror(output.reason()));
  return status != 0 ? status : 3;
}

int run(int argc, char** argv) {
  using namespace brigade;
  const std::string version_text = std::string(version()) + " (" + std::string(commit()) + "), instruction set " +
                                   std::string(kernels::instruction_set());
  std::string job;
  const auto add_commands = [&job](lab::Command& app) {
    lab::add_demo(app);
    lab::add_run(app);
    lab::add_train(app);
    lab::add_diagnose(app);
    lab::add_check(app);
    lab::add_bench(app);
    lab::add_explain(app);
    lab::add_doctor(app);
    lab::Command rank_job = app.add_command("rank-job", "");  // ranks that brigade starts of itself
    rank_job.hide();
    rank_job.add_option("name", job, "").required();
    rank_job.action([&job] { return lab::rank_job_main(job); });
  };
  try {
    return lab::run_command_line(argc, argv, "Brigade: autograd and distributed data parallel, from scratch",
                                 version_text, add_commands);
  } catch (const brigade::ValueError& error) {
    tell(error.what());
    return 2;
  } catch (const brigade::IoError& error) {
    tell(error.what());
    return 3;
  } catch (const brigade::DeviceError& error) {
    tell(error.what());
    return 3;
  } catch (const std::bad_alloc&) {
    tell("out of memory");
    return 3;
  } catch (const std::exception& error) {
    tell(error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const brigade::lab::Printable output(std::cout), errors(std::cerr);
  return with_output_written(run(argc, argv), output);
}
