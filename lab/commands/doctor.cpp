// brigade doctor: shows what this program will use here, why, and what is broken; with --amp, what autocast casts.
#include <brigade/amp/autocast.h>
#include <brigade/core/version.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/doctor/machine.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace brigade::lab {
namespace {

using nlohmann::json;

// Returns whether nothing is broken.
bool tell_machine(Results& results) {
  const std::vector<Finding> findings = findings_of(read_machine(), dist::all_backends());
  std::cout << fmt::format("brigade {} ({})\n", version(), commit()) << in_words(findings);
  bool sound = true;
  for (const Finding& each : findings) {
    sound = sound && each.health != Health::Broken;
    results.add({{"section", each.section},
                 {"name", each.name},
                 {"value", each.value},
                 {"health", name(each.health)},
                 {"advice", each.advice}});
  }
  return sound;
}

// Prints one line per operation, grouped by how autocast casts its inputs.
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
  Command command =
      app.add_command("doctor", "Say what will be used here and why, what is missing, and what is broken");
  command.footer(
      "Examples:\n  brigade doctor\n  brigade doctor --amp\n  brigade doctor --amp --json -\nEnds with 3 when something "
      "is broken (marked x). What autocast is: docs/amp.md.");
  command.add_flag("--amp", given->amp, "what autocast casts: each operation's rule on the CPU and on CUDA");
  given->results.add_json_option(command);
  command.action([given] {
    given->results.begin();
    bool sound = true;
    if (given->amp) {
      tell_op_lists(given->results);
    } else {
      sound = tell_machine(given->results);
    }
    given->results.write();
    return sound ? 0 : 3;
  });
}

}  // namespace brigade::lab
