// Pad with its modes by name, for `brigade check`.
#include <brigade/autograd/ops/pad.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

PadMode pad_mode(const std::string& name) {
  if (name == "constant") return PadMode::Constant;
  if (name == "reflect") return PadMode::Reflect;
  if (name == "replicate") return PadMode::Replicate;
  if (name == "circular") return PadMode::Circular;
  throw ValueError("argument 'mode': expected constant, reflect, replicate or circular, got '{}'", name);
}

const AddOperations add_pad{
    {"pad",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Shape given = args.shape("pad");
       const std::vector<int64_t> pads(given.begin(), given.end());
       if (args.has("value")) return pad(in[0], pads, PadMode::Constant, args.scalar("value"));
       return args.has("mode") ? pad(in[0], pads, pad_mode(args.text("mode"))) : pad(in[0], pads);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
