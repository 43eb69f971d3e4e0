// The command line of `brigade`: commands, their options, what they do. Only command_line.cpp
// includes CLI11, which costs a compiler five seconds in each file that does.
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

// What an option takes: `wrong` says what is wrong with a value, "" when nothing is; `about` stands
// in --help.
struct ValueCheck {
  std::string about;
  std::function<std::string(const std::string& value)> wrong;
};

class Option {
 public:
  Option& required();
  // Wrong usage (exit status 2) where the check finds something wrong.
  Option& check(ValueCheck check);
  // --help says what it is when it is not given.
  Option& show_default();
  Option& separated_by(char separator);
  // Wrong usage together with this other option of the same command.
  Option& excludes(const std::string& other);
  // On the command line; to be asked when the command runs.
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
  // "--name", "-n,--name", or a name without dashes for what stands by itself; the value must
  // outlive the command.
  // T: std::string, int, int64_t, uint64_t, double, std::vector<std::string>.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& help);
  Option add_flag(const std::string& name, bool& value, const std::string& help);
  // Examples, and what else belongs under the options in --help.
  void footer(const std::string& text);
  // Not listed in --help.
  void hide();
  // All behind the first word without a dash is that word's.
  void end_options_at_first_word();
  // One of the commands below it must be named.
  void require_command();
  // What it does; returns the exit status.
  void action(std::function<int()> run);
  // What it does with all words behind its name, none of which is read here: not --help either.
  void action_with_all_words(std::function<int(const std::vector<std::string>& words)> run);

 private:
  friend int run_command_line(int argc, char** argv, const std::string& about, const std::string& version,
                              const std::function<void(Command&)>& add_commands);
  Command(CLI::App& app, std::shared_ptr<int> exit_status) : app_(&app), exit_status_(std::move(exit_status)) {}
  CLI::App* app_;
  std::shared_ptr<int> exit_status_;
};

// Reads the arguments and runs the command that they name. Returns its exit status, 0 for --help
// and --version, 2 for wrong usage. What a command throws comes out.
int run_command_line(int argc, char** argv, const std::string& about, const std::string& version,
                     const std::function<void(Command&)>& add_commands);

}  // namespace brigade::lab
