// State of the model or of an optimizer that one rank loads: if the ranks then hold different values, it is reported
// before the next step with the line of the load, and otherwise not.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>

namespace brigade::test::loaded_state_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

optim::OptimizerState copy_of(optim::OptimizerState state) {
  for (auto& [name, tensor] : state.tensors)
    tensor = tensor.clone();
  return state;
}

// Takes two steps and keeps the state after each, runs `load`, and takes another step.
struct Training {
  explicit Training(const dist::ProcessGroupPtr& process_group, const dist::DDPOptions& options = {})
      : group(process_group), ddp(net, group, options), optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9}) {}
  void step() {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), number++))).backward();
    if (edit) edit(*this);
    optimizer.step();
  }
  void run(const std::function<void(Training&)>& load) {
    step();
    first = copy_of(optimizer.state_dict());
    step();
    second = copy_of(optimizer.state_dict());
    load(*this);
    step();
  }
  bool is_last() const { return group->rank() == group->size() - 1; }

  dist::ProcessGroupPtr group;
  Net net;
  Ddp ddp;
  optim::SGD optimizer;
  std::function<void(Training&)> edit;  // between backward and step
  optim::OptimizerState first, second;
  int number = 0;
};

std::string check_found(const dist::ProcessGroupPtr& group) {
  const std::string last = fmt::format("rank {}", group->size() - 1);
  Training training(group);
  std::string wrong = expect_error<dist::ConsistencyError>(
      [&] {
        training.run([](Training& of) {
          if (of.is_last()) of.optimizer.load_state_dict(of.first);
        });
      },
      {last + " loaded another state into SGD (moments, momentum) at", "loaded_state_cases.cpp:", "on every rank"});
  if (!wrong.empty()) return wrong;
  // All ranks load, the last one another state.
  Training other(group);
  return expect_error<dist::ConsistencyError>(
      [&] { other.run([](Training& of) { of.optimizer.load_state_dict(of.is_last() ? of.first : of.second); }); },
      {group->size() == 2 ? "the ranks loaded different states into SGD" : last + " loaded another state into SGD"});
}
const AddRankCase add_found("an optimizer's state that one rank has loaded is found before the next step", &check_found,
                            everywhere({2, 3}));

std::string check_sound(const dist::ProcessGroupPtr& group) {
  const std::pair<const char*, std::function<void(Training&)>> loads[] = {
      {"all go back", [](Training& of) { of.optimizer.load_state_dict(of.first); }},
      {"one takes what it has",
       [](Training& of) {
         if (of.is_last()) of.optimizer.load_state_dict(of.second);
       }},
      {"one goes back, and forth",
       [](Training& of) {
         if (!of.is_last()) return;
         of.optimizer.load_state_dict(of.first);
         of.optimizer.load_state_dict(of.second);
       }},
      {"one goes back, and all forth",
       [](Training& of) {
         if (of.is_last()) of.optimizer.load_state_dict(of.first);
         of.optimizer.load_state_dict(of.second);
       }},
      {"one loads its own model", [](Training& of) {
         if (of.is_last()) of.net->load_state_dict(of.net->state_dict());
       }}};
  for (const auto& [what, load] : loads) {
    Training training(group);
    try {
      training.run(load);
    } catch (const dist::ConsistencyError& error) {
      return fmt::format("{}: {}", what, error.what());
    }
  }
  return "";
}
const AddRankCase add_sound("a state that is the same on all ranks after loading is no matter", &check_sound,
                            everywhere({2, 3}));

// The state of an optimizer that has not stepped holds no tensors: loading it discards the moments.
std::string check_empty_state(const dist::ProcessGroupPtr& group) {
  for (const bool on_all : {true, false}) {
    manual_seed(1);
    Net net;
    Ddp ddp(net, group);
    optim::Adam optimizer(net->parameters(), {.lr = 0.1});
    const optim::OptimizerState fresh = optimizer.state_dict();
    const auto train = [&] {
      for (int s = 0; s < 3; ++s) {
        optimizer.zero_grad();
        loss_of(ddp(batch_of(group->rank(), s))).backward();
        if (s == 2 && (on_all || group->rank() == 0)) optimizer.load_state_dict(fresh);
        optimizer.step();
      }
    };
    if (on_all) {
      train();
      continue;
    }
    return expect_error<dist::ConsistencyError>(train,
                                                {"rank 0 loaded another state into Adam (moments, momentum) at"});
  }
  return "";
}
const AddRankCase add_empty_state("an empty state that one rank has loaded is found before the next step",
                                  &check_empty_state, everywhere({2, 3}));

enum class Load { Last, AllAlike, AllButLastAsItIs };

// After three steps the last rank, or all ranks, load the current tensors with a step count that is one lower; or the
// last rank does, and the others load their own state. Returns the text of the error, or "".
template <class Optimizer, class Options>
std::string said_of_other_count(const dist::ProcessGroupPtr& group, const Options& options, Load load = Load::Last) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  Optimizer optimizer(net->parameters(), options);
  optim::OptimizerState before;
  for (int s = 0; s < 4; ++s) {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    if (s == 2) before = optimizer.state_dict();
    if (s == 3) {
      optim::OptimizerState now = optimizer.state_dict();
      const bool is_last = group->rank() == group->size() - 1;
      if (is_last || load == Load::AllAlike) now.numbers = before.numbers;
      if (is_last || load != Load::Last) optimizer.load_state_dict(now);
    }
    try {
      optimizer.step();
    } catch (const dist::ConsistencyError& error) {
      return error.what();
    }
  }
  return "";
}

std::string check_other_count(const dist::ProcessGroupPtr& group) {
  const auto told = [&](const std::string& text, const char* optimizer) {
    const std::string expected = fmt::format(
        "rank {} loaded another state into {} (the number of steps that it has taken)", group->size() - 1, optimizer);
    return text.find(expected) != std::string::npos && text.find("loaded_state_cases.cpp:") != std::string::npos;
  };
  if (const auto said = said_of_other_count<optim::Adam>(group, optim::AdamOptions{}); !told(said, "Adam"))
    return "Adam: " + said;
  if (const auto said = said_of_other_count<optim::Adam>(group, optim::AdamOptions{}, Load::AllButLastAsItIs);
      said.find(group->size() == 2 ? "the ranks loaded different states into Adam (the number of steps"
                                   : "loaded another state into Adam (the number of steps") == std::string::npos)
    return "all load: " + said;
  if (const auto said = said_of_other_count<optim::NAdam>(group, optim::NAdamOptions{}); !told(said, "NAdam"))
    return "NAdam: " + said;
  if (const auto said = said_of_other_count<optim::Adagrad>(group, optim::AdagradOptions{.lr_decay = 0.1});
      !told(said, "Adagrad"))
    return "Adagrad: " + said;
  return "";
}
const AddRankCase add_other_count("a state that differs in its number of steps alone is found where a step reads it",
                                  &check_other_count, everywhere({2, 3}));

std::string check_count_is_no_matter(const dist::ProcessGroupPtr& group) {
  const std::pair<const char*, std::string> said[] = {
      {"all load", said_of_other_count<optim::Adam>(group, optim::AdamOptions{}, Load::AllAlike)},
      {"SGD", said_of_other_count<optim::SGD>(group, optim::SGDOptions{.lr = 0.1})},
      {"momentum", said_of_other_count<optim::SGD>(group, optim::SGDOptions{.lr = 0.1, .momentum = 0.9})},
      {"RMSprop", said_of_other_count<optim::RMSprop>(group, optim::RMSpropOptions{})},
      {"Adagrad", said_of_other_count<optim::Adagrad>(group, optim::AdagradOptions{})}};
  for (const auto& [what, text] : said) {
    if (!text.empty()) return fmt::format("{}: {}", what, text);
  }
  return "";
}
const AddRankCase add_count_is_no_matter("another number of steps is no matter where no step reads it, or all load it",
                                         &check_count_is_no_matter, everywhere({2, 3}));

// Each rank of a ZeroRedundancyOptimizer keeps its part of a state that it loads: whether the last rank loads, and
// what, does not show in the parts of the others. `load`: the state for this rank in `step`; null for none.
std::string said_of_split(const dist::ProcessGroupPtr& group,
                          const std::function<const optim::OptimizerState*(bool is_last, int step)>& load) {
  Net net;
  Ddp ddp(net, group);
  dist::ZeroRedundancyOptimizer<optim::Adam> optimizer(net->parameters(), {.lr = 0.1}, group);
  for (int s = 0; s < 3; ++s) {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    if (const optim::OptimizerState* state = load(group->rank() == group->size() - 1, s))
      optimizer.load_state_dict(*state);
    try {
      optimizer.step();
    } catch (const dist::ConsistencyError& error) {
      return error.what();
    }
  }
  return "";
}

std::string check_split(const dist::ProcessGroupPtr& group) {
  std::vector<optim::OptimizerState> states;  // after one step, and after two
  Net net;
  Ddp ddp(net, group);
  optim::Adam plain(net->parameters(), {.lr = 0.1});
  for (int s = 0; s < 2; ++s) {
    plain.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    plain.step();
    states.push_back(copy_of(plain.state_dict()));
  }
  for (const int at : {0, 1}) {
    const auto all = [&](bool, int s) { return s == at ? &states[0] : nullptr; };
    if (const std::string said = said_of_split(group, all); !said.empty()) return "all load: " + said;
    const auto back_and_forth = [&](bool, int s) { return s == at ? &states[0] : s == at + 1 ? &states[1] : nullptr; };
    if (const std::string said = said_of_split(group, back_and_forth); !said.empty()) return "twice: " + said;
    const auto last = [&](bool is_last, int s) { return s == at && is_last ? &states[0] : nullptr; };
    const auto other = [&](bool is_last, int s) { return s == at ? &states[is_last ? 0 : 1] : nullptr; };
    const std::string expected =
        fmt::format("rank {} loaded another state into ZeroRedundancyOptimizer (moments, momentum)", group->size() - 1);
    const std::string of_two = group->size() == 2 ? "the ranks loaded different states into" : expected;
    if (const std::string said = said_of_split(group, last); said.find(expected) == std::string::npos)
      return "the last alone: " + said;
    if (const std::string said = said_of_split(group, other); said.find(of_two) == std::string::npos)
      return "the last another: " + said;
  }
  return "";
}
const AddRankCase add_split("a state that is split over the ranks is to be loaded by all of them, and the same",
                            &check_split, everywhere({2, 3}));

// An optimizer counts its own steps: one that a rank has recreated starts again at 0.
std::string check_made_again(const dist::ProcessGroupPtr& group) {
  for (const bool on_all : {true, false}) {
    Net net;
    Ddp ddp(net, group);
    auto optimizer = std::make_unique<optim::Adam>(net->parameters(), optim::AdamOptions{.lr = 0.1});
    const auto train = [&] {
      for (int s = 0; s < 3; ++s) {
        if (s == 2 && (on_all || group->rank() == group->size() - 1))
          optimizer = std::make_unique<optim::Adam>(net->parameters(), optim::AdamOptions{.lr = 0.1});
        optimizer->zero_grad();
        loss_of(ddp(batch_of(group->rank(), s))).backward();
        optimizer->step();
      }
    };
    if (on_all) {
      train();
      continue;
    }
    const std::string wrong = expect_error<dist::ConsistencyError>(
        train, {"different optimizer steps", "make a new optimizer", "on every rank or on none"});
    if (!wrong.empty()) return wrong;
  }
  return "";
}
const AddRankCase add_made_again("an optimizer that one rank has made again is reported with what to do",
                                 &check_made_again, everywhere({2}));

std::string check_line(const dist::ProcessGroupPtr& group) {
  Training training(group);
  nn::Named<Tensor> saved;
  for (const auto& [name, tensor] : training.net->state_dict())
    saved.emplace_back(name, tensor.clone());
  unsigned line = 0;
  try {
    training.run([&](Training& of) {
      line = __LINE__ + 1;
      if (of.is_last()) of.net->load_state_dict(saved);
    });
  } catch (const dist::ConsistencyError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    if (verdict.kind != "parameters_written" || verdict.cause.op != "load_state_dict") return error.what();
    const Place expected("dist/loaded_state_cases.cpp", line);
    return to_string(verdict.cause.place) == to_string(expected) ? "" : error.what();
  }
  return "nothing was said";
}
const AddRankCase add_line("a model's state that one rank has loaded is reported with the line that loaded it",
                           &check_line, everywhere({2, 3}));

// A head that is initialized again after wrapping, with a seed per rank or with the same seed on all.
std::string check_drawn_again(const dist::ProcessGroupPtr& group) {
  using Draw = void (*)(const Tensor&, uint64_t seed, unsigned& line);
  const Draw draws[] = {[](const Tensor& weight, uint64_t seed, unsigned& line) {
                          manual_seed(seed);
                          line = __LINE__ + 1;
                          nn::init::normal_(weight);
                        },
                        [](const Tensor& weight, uint64_t seed, unsigned& line) {
                          manual_seed(seed);
                          line = __LINE__ + 1;
                          nn::init::orthogonal_(weight);
                        },
                        [](const Tensor& weight, uint64_t seed, unsigned& line) {
                          line = __LINE__ + 1;
                          nn::init::constant_(weight, static_cast<double>(seed));
                        }};
  for (const Draw draw : draws) {
    unsigned line = 0;
    Training alike(group);
    alike.run([&](Training& of) { draw(of.net->c->weight, 7, line); });
    if (!dist::verify_consistency(*group, alike.net).consistent()) return "drawn alike";
    Training other(group);
    try {
      other.run([&](Training& of) { draw(of.net->c->weight, of.is_last() ? 8 : 7, line); });
    } catch (const dist::ConsistencyError& error) {
      const dist::Verdict& verdict = error.verdicts().at(0);
      if (verdict.kind != "parameters_written" || verdict.parameters.at(0).name != "c.weight") return error.what();
      if (to_string(verdict.cause.place) != to_string(Place("dist/loaded_state_cases.cpp", line))) return error.what();
      continue;
    }
    return "nothing was said";
  }
  return "";
}
const AddRankCase add_drawn_anew(
    "initial values that the ranks draw differently after wrapping are reported, with the line", &check_drawn_again,
    everywhere({2, 3}));

// Writes memory through a pointer: the version shows that it was written, but not where.
void write_through_pointer(const Tensor& tensor, double value) {
  tensor.data_ptr<double>()[0] = value;
  tensor.bump_version();
}

std::string check_pointer_writes(const dist::ProcessGroupPtr& group) {
  const auto told = [&](const char* kind, const std::function<void(Training&)>& write) -> std::string {
    try {
      Training(group).run(write);
    } catch (const dist::ConsistencyError& error) {
      const dist::Verdict& verdict = error.verdicts().at(0);
      const bool right = error.verdicts().size() == 1 && verdict.kind == kind && !verdict.cause.place &&
                         verdict.ranks == std::vector<int>{group->size() - 1} && verdict.parameters.size() == 1 &&
                         verdict.parameters[0].name == "a.weight" &&
                         verdict.cause.text.find("data_ptr") != std::string::npos;
      return right ? "" : error.what();
    }
    return "nothing was said";
  };
  std::string wrong = told("parameters_written", [](Training& of) {
    if (of.is_last()) write_through_pointer(of.net->a->weight, 3);
  });
  if (!wrong.empty()) return "a weight: " + wrong;
  for (const bool views : {true, false}) {
    Training training(group, {.gradient_as_bucket_view = views});
    training.edit = [](Training& of) {
      if (of.is_last()) write_through_pointer(of.net->a->weight.grad(), 3);
    };
    wrong = told("gradients_edited", [&](Training&) { training.run([](Training&) {}); });
    if (!wrong.empty()) return fmt::format("a gradient, views {}: {}", views, wrong);
  }
  return "";
}
const AddRankCase add_pointer_writes("what one rank writes through a pointer is found before the next step",
                                     &check_pointer_writes, everywhere({2, 3}));

std::string check_sound_pointer_writes(const dist::ProcessGroupPtr& group) {
  Training training(group);
  training.edit = [](Training& of) {
    write_through_pointer(of.net->a->weight.grad(), 0.25);
    if (of.is_last()) of.net->b->weight.grad().bump_version();
  };
  training.run([](Training& of) {
    write_through_pointer(of.net->a->weight, 3);
    if (of.is_last()) of.net->b->weight.bump_version();
  });
  training.step();
  return "";
}
const AddRankCase add_sound_pointer_writes("what all ranks write alike through pointers is no matter",
                                           &check_sound_pointer_writes, everywhere({2, 3}));

// The check of a step does not depend on the diagnosis.
std::string check_without_diagnosis(const dist::ProcessGroupPtr& group) {
  Training training(group, {.diagnosis = false});
  return expect_error<dist::ConsistencyError>(
      [&] {
        training.run([](Training& of) {
          const NoGradGuard no_grad;
          if (of.is_last()) of.net->a->weight.mul_(2);
        });
      },
      {"a.weight", fmt::format("rank {}", group->size() - 1), "mul_ at", "loaded_state_cases.cpp:"});
}
const AddRankCase add_without_diagnosis("a weight that one rank has written is found without diagnosis as well",
                                        &check_without_diagnosis, everywhere({2, 3}));

}  // namespace brigade::test::loaded_state_cases
