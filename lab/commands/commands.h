// The commands of the program `brigade`.
#pragma once

#include <brigade/lab/command_line.h>

#include <string_view>

namespace brigade::lab {

void add_demo(Command& app);
void add_run(Command& app);
void add_train(Command& app);
void add_diagnose(Command& app);
void add_claims(Command& app);
void add_check(Command& app);
void add_bench(Command& app);
void add_explain(Command& app);
// What else can be done about a kind of verdict; "" for an unknown one.
std::string_view more_about(std::string_view kind) noexcept;
void add_doctor(Command& app);

}  // namespace brigade::lab
