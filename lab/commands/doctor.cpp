// brigade doctor: what this program will use here, and with --amp what autocast casts.
#include <brigade/amp/op_lists.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/version.h>
#include <brigade/kernels/instruction_set.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab {

namespace {

using nlohmann::json;

json device_row(DeviceType type) {
  json row{{"device", name(type)},
           {"count", device_count(type)},
           {"names", json::array()},
           {"why_not", why_no_device(type)}};
  for (int i = 0; type != kCPU && i < device_count(type); ++i)
    row["names"].push_back(device_runtime({type, i}).name(i));
  if (type == kCPU) row["names"].push_back("instruction set " + std::string(kernels::instruction_set()));
  return row;
}

void tell_devices(Results& results) {
  std::cout << fmt::format("brigade {} ({})\n", version(), commit());
  for (const DeviceType type : {kCPU, kCUDA}) {
    const json row = device_row(type);
    std::string names;
    for (const json& each : row.at("names"))
      names += (names.empty() ? "" : ", ") + each.get<std::string>();
    if (names.empty()) names = row.at("why_not");
    std::cout << fmt::format("{:<6} {}\n", name(type), names);
    results.add(row);
  }
}

// An operation in one line, by what happens to its inputs.
void tell_op_lists(Results& results) {
  constexpr const char* kLine = "{:<34} {:<16} {:<16} {}\n";
  std::cout << fmt::format(kLine, "operation", "cpu", "cuda", "in PyTorch");
  for (const amp::ListedOperation& operation : amp::op_lists()) {
    const std::string why = *operation.why ? std::string("; ") + operation.why : "";
    std::cout << fmt::format(kLine, operation.name, amp::name(operation.cpu), amp::name(operation.cuda),
                             operation.torch + why);
    results.add({{"operation", operation.name},
                 {"cpu", amp::name(operation.cpu)},
                 {"cuda", amp::name(operation.cuda)},
                 {"torch", operation.torch},
                 {"why", operation.why}});
  }
  std::cout << "\nlower precision: inputs are cast to the dtype of the region, bfloat16 or float16\n"
               "float32:         to float32\n"
               "widest:          to the widest dtype among the inputs\n"
               "refused:         an error, inside of a region\n"
               "as it is:        nothing is cast, also not in the operations that it is made of\n"
               "not listed:      as every operation that does not stand here: nothing is cast\n"
               "float64 and integers stay what they are. What is written in place is not cast.\n";
}

}  // namespace

void add_doctor(Command& app) {
  struct Arguments {
    bool amp = false;
    Results results;
  };
  auto given = std::make_shared<Arguments>();
  Command command = app.add_command("doctor", "Say what will be used here: devices, instruction set, dtypes");
  command.footer(
      "Examples:\n  brigade doctor\n  brigade doctor --amp\n  brigade doctor --amp --json -\nWhat autocast is: "
      "docs/amp.md.");
  command.add_flag("--amp", given->amp, "what autocast casts: each operation's rule on the CPU and on CUDA");
  given->results.add_json_option(command);
  command.action([given] {
    given->results.begin();
    if (given->amp) {
      tell_op_lists(given->results);
    } else {
      tell_devices(given->results);
    }
    given->results.write();
    return 0;
  });
}

}  // namespace brigade::lab
