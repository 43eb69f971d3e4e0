// Implements commands and options with CLI11, and reports wrong usage.
#include <brigade/lab/command_line.h>

#include <brigade/lab/options.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace brigade::lab {

Option& Option::required() {
  option_->required();
  return *this;
}
Option& Option::check(ValueCheck check) {
  option_->check(
      CLI::Validator([wrong = std::move(check.wrong)](const std::string& value) { return wrong(value); }, check.about));
  return *this;
}
Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}
Option& Option::separated_by(char separator) {
  option_->delimiter(separator);
  return *this;
}
Option& Option::excludes(const std::string& other) {
  option_->excludes(command_->get_option(other));
  return *this;
}
bool Option::is_given() const { return option_->count() > 0; }

Command Command::add_command(const std::string& name, const std::string& about) {
  return Command(*app_->add_subcommand(name, about), exit_status_);
}

template <class T>
Option Command::add_option(const std::string& names, T& value, const std::string& help) {
  return Option(*app_, *app_->add_option(names, value, help));
}
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, int64_t&, const std::string&);
template Option Command::add_option(const std::string&, uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);

Option Command::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Option(*app_, *app_->add_flag(name, value, help));
}

void Command::footer(const std::string& text) { app_->footer(text); }
void Command::hide() { app_->group(""); }
void Command::end_options_at_first_word() { app_->prefix_command(false)->positionals_at_end(); }
void Command::require_command() { app_->require_subcommand(1); }
void Command::action(std::function<int()> run) {
  app_->callback([run = std::move(run), status = exit_status_] { *status = run(); });
}
void Command::action_with_all_words(std::function<int(const std::vector<std::string>&)> run) {
  app_->set_help_flag();
  app_->prefix_command();
  app_->callback([run = std::move(run), status = exit_status_, app = app_] { *status = run(app->remaining()); });
}

namespace {

// The innermost command named so far.
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  return named.empty() ? app : innermost(*named.back());
}

// The names of a command's options, with dashes.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
    for (const std::string& name : option->get_snames())
      names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); }))
    names.push_back(command->get_name());
  return names;
}

// Describes an unknown argument and the nearest known one; "" when every argument was recognized.
std::string unknown_word(const CLI::App& app) {
  const auto near = [](const std::string& word, const std::vector<std::string>& known) {
    const std::vector<std::string> nearest = nearest_words(word, known, 1);
    return nearest.empty() ? std::string() : "; the nearest is " + nearest.front();
  };
  const std::vector<std::string> words = app.remaining();
  for (const std::string& word : words) {
    if (!word.starts_with("-")) continue;
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("unknown option {}{}", name, near(name, option_names(app)));
  }
  const std::vector<std::string> commands = command_names(app);
  if (words.empty()) return "";
  return commands.empty() ? fmt::format("unexpected word '{}'", words.front())
                          : fmt::format("unknown command '{}'{}", words.front(), near(words.front(), commands));
}

// The error in one line, and a pointer to --help.
std::string usage_error(const CLI::App& app, const CLI::Error& error) {
  const CLI::App& named = innermost(app);
  const std::string unknown = unknown_word(named);
  std::string call = "brigade";
  if (&named != &app) {
    for (const CLI::App* each = &app; each != &named;) {
      each = each->get_subcommands().back();
      call += " " + each->get_name();
    }
  }
  return fmt::format("{}: {}\nRun with --help for more information.\n", call, unknown.empty() ? error.what() : unknown);
}

}  // namespace

int run_command_line(int argc, char** argv, const std::string& about, const std::string& version,
                     const std::function<void(Command&)>& add_commands) {
  CLI::App app{about};
  app.set_version_flag("--version", version);
  app.get_formatter()->column_width(36);
  app.failure_message([](const CLI::App* top, const CLI::Error& error) { return usage_error(*top, error); });
  Command top(app, std::make_shared<int>(0));
  top.require_command();
  add_commands(top);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return *top.exit_status_;
}

}  // namespace brigade::lab
