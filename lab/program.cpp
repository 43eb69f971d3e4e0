// Maps the errors that commands throw to exit statuses, and reports output that was not written.
#include <brigade/core/detail/files.h>
#include <brigade/core/error.h>
#include <brigade/core/version.h>
#include <brigade/dist/rendezvous/launch/environment.h>
#include <brigade/kernels/kernel.h>
#include <brigade/lab/program.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/terminal.h>

#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string>

namespace brigade::lab {
namespace {

// Writes in one call, since ranks share standard error.
void tell(const std::string& text) { std::cerr << "brigade: " + text + "\n"; }

// A full disk or a closed pipe must not look like success.
int with_output_written(int status, const Printable& output) {
  std::cout.flush();
  if (std::cout.good()) return status;
  tell(std::string("not all of the output could be written to standard output: ") + std::strerror(output.reason()));
  return status != 0 ? status : 3;
}

int run_commands(int argc, char** argv, const std::function<void(Command&)>& add_commands) {
  const std::string version_text = std::string(version()) + " (" + std::string(commit()) + "), instruction set " +
                                   std::string(kernels::instruction_set());
  std::string job;
  const auto add_all = [&](Command& app) {
    add_commands(app);
    Command rank_job = app.add_command("rank-job", "");  // runs in the rank processes that this program starts
    rank_job.hide();
    rank_job.add_option("name", job, "").required();
    rank_job.action([&job] { return rank_job_main(job); });
  };
  try {
    dist::check_thread_count();
    return run_command_line(argc, argv, "Brigade: autograd and distributed data parallel, from scratch", version_text,
                            add_all);
  } catch (const ValueError& error) {
    tell(error.what());
    return 2;
  } catch (const IoError& error) {
    tell(error.what());
    return 3;
  } catch (const DeviceError& error) {
    tell(error.what());
    return 3;
  } catch (const EndedBySignal& ended) {
    tell(ended.in_words());
    return 128 + ended.signal;
  } catch (const std::bad_alloc&) {
    tell("out of memory");
    return 3;
  } catch (const std::exception& error) {
    tell(error.what());
    return 1;
  }
}

}  // namespace

int run_program(int argc, char** argv, const std::function<void(Command&)>& add_commands) {
  brigade::detail::fill_standard_descriptors();
  const Printable output(std::cout), errors(std::cerr);
  return with_output_written(run_commands(argc, argv, add_commands), output);
}

}  // namespace brigade::lab
