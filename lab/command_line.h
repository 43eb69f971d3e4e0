// The command line of `brigade`: commands, their options, and their actions. Only command_line.cpp includes CLI11,
// which costs a compiler five seconds in each file that does.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace brigade::lab {

// Validates an option's value: `wrong` returns an error message, or "" for a valid value; `about` is shown in
// --help.
struct ValueCheck {
  std::string about;
  std::function<std::string(const std::string& value)> wrong;
};

class Option {
 public:
  Option& required();
  // A value that fails the check is wrong usage (exit status 2).
  Option& check(ValueCheck check);
  // --help shows the default.
  Option& show_default();
  Option& separated_by(char separator);
  // `other` names another option of the same command; giving both is wrong usage.
  Option& excludes(const std::string& other);
  // Whether the option was given on the command line. Call it when the command runs.
  bool is_given() const;

 private:
  friend class Command;
  Option(CLI::App& command, CLI::Option& option) : command_(&command), option_(&option) {}
  CLI::App* command_;
  CLI::Option* option_;
};

class Command {
 public:
  Command add_command(const std::string& name, const std::string& about);
  // "--name", "-n,--name", or a name without dashes for a positional argument. `value` must outlive the command.
  // T: std::string, int, int64_t, uint64_t, double, std::vector<std::string>.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& help);
  Option add_flag(const std::string& name, bool& value, const std::string& help);
  // Examples and other text below the options in --help.
  void footer(const std::string& text);
  // Hides the command from --help.
  void hide();
  // All arguments after the first positional one belong to it.
  void end_options_at_first_word();
  // A subcommand must be given.
  void require_command();
  // Sets what the command does; `run` returns the exit status.
  void action(std::function<int()> run);
  // Sets what the command does with all arguments after its name, none of which is parsed here, not even --help.
  void action_with_all_words(std::function<int(const std::vector<std::string>& words)> run);

 private:
  friend int run_command_line(int argc, char** argv, const std::string& about, const std::string& version,
                              const std::function<void(Command&)>& add_commands);
  Command(CLI::App& app, std::shared_ptr<int> exit_status) : app_(&app), exit_status_(std::move(exit_status)) {}
  CLI::App* app_;
  std::shared_ptr<int> exit_status_;
};

// Parses the arguments and runs the command that they name. Returns its exit status, 0 for --help and --version, 2
// for wrong usage. Exceptions of a command propagate.
int run_command_line(int argc, char** argv, const std::string& about, const std::string& version,
                     const std::function<void(Command&)>& add_commands);

}  // namespace brigade::lab
