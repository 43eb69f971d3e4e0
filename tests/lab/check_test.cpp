// brigade check: everything agrees with PyTorch, and any disagreement is found and named.
#include <brigade/core/factory.h>
#include <brigade/core/safetensors.h>
#include <brigade/lab/reference/models/model.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/suite.h>

#include "../autograd/ops/operations.h"
#include "../core/temporary_folder.h"
#include "program.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace brigade::test::check_test {

using namespace brigade::lab;
using test::contains;
using test::run_program;
using test::TemporaryFolder;

namespace fs = std::filesystem;

// Copies the family's case file and its fixture.
void copy_family(const TemporaryFolder& folder, const std::string& family) {
  const fs::path source = reference::reference_folder();
  fs::create_directories(folder / "cases");
  fs::create_directories(folder / "fixtures/models");
  fs::copy_file(source / "cases" / (family + ".json"), folder / ("cases/" + family + ".json"));
  fs::copy_file(source / "fixtures" / (family + ".safetensors"), folder / ("fixtures/" + family + ".safetensors"));
  std::ofstream(folder / "models.json") << "[]";
  std::ofstream(folder / "autocast_models.json") << "[]";
}

// Loads the tensors of a file, lets `change` modify them, and saves them again.
void rewrite(const std::string& path, const std::function<void(Safetensors&)>& change) {
  Safetensors file = load_safetensors(path);
  change(file);
  save_safetensors(path, file.tensors, file.metadata);
}

Tensor& find(Safetensors& file, const std::string& name) {
  for (auto& [other, tensor] : file.tensors)
    if (other == name) return tensor;
  FAIL("no tensor " << name);
  return file.tensors[0].second;
}

void replace_text(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = test::read_bytes(path);
  REQUIRE(contains(text, from));
  text.replace(text.find(from), from.size(), to);
  test::write_bytes(path, text);
}

test::Outcome check_copy(const TemporaryFolder& folder, const std::string& more = "") {
  return run_program("check --all --reference " + folder.text() + " " + more);
}

// Writes a file of one model step from the model's fixture: PyTorch's results of the first of 20 steps.
void write_step(const std::string& path, const std::string& model) {
  const SafetensorsFile fixture(reference::reference_folder() + "/fixtures/models/" + model + ".safetensors");
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const SafetensorsEntry& entry : fixture.entries()) {
    const std::string& name = entry.name;
    const std::string gradients = "sgd/float64/step1/grad.";
    const auto widened = [](const Tensor& t) { return is_floating_point(t.dtype()) ? t.to(kFloat64) : t; };
    if (name.starts_with("input.")) tensors.emplace_back(name, widened(fixture.tensor(name).select(0, 0)));
    if (name.starts_with("parameter.")) tensors.emplace_back(name, widened(fixture.tensor(name)));
    if (name.starts_with(gradients))
      tensors.emplace_back("grad." + name.substr(gradients.size()), fixture.tensor(name));
  }
  tensors.emplace_back("loss", fixture.tensor("sgd/float64/loss.0").select(0, 0));
  const nlohmann::json row = nlohmann::json::parse(fixture.metadata().at("case"));
  save_safetensors(path, tensors, {{"model", model}, {"arguments", row.at("arguments").dump()}});
}

// Writes a file of one operation: a case of a fixture, under the names that users give.
void write_op(const std::string& path, const std::string& family, const std::string& id) {
  const SafetensorsFile fixture(reference::reference_folder() + "/fixtures/" + family + ".safetensors");
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const SafetensorsEntry& entry : fixture.entries())
    if (entry.name.starts_with(id + "/"))
      tensors.emplace_back(entry.name.substr(id.size() + 1), fixture.tensor(entry.name));
  const nlohmann::json row = nlohmann::json::parse(fixture.metadata().at(id));
  save_safetensors(
      path, tensors,
      {{"op", row.at("op").get<std::string>()}, {"arguments", row.value("args", nlohmann::json::object()).dump()}});
}

TEST_CASE("every operation and every model agrees with PyTorch, and no operation lacks a case") {
  int cases = 0;
  std::set<std::string> operations, models, on_graph;
  reference::run_suite(
      {.folder = reference::reference_folder(),
       .device = {},
       .dtype = {},
       .only = "",
       .seen = [&](const Tensor& result) { test::collect_operations(result, on_graph); }},
      [&](const reference::SuiteResult& done) {
        ++cases;
        (done.family == reference::kModelsFamily ? models : operations).insert(done.op);
        CHECK_MESSAGE(done.result.passed(), done.id << ": " << done.result.error << "\n" << done.result.report.table());
      });
  MESSAGE(cases << " cases over " << operations.size() << " operations and " << models.size() << " models");
  CHECK(cases >= 600);
  CHECK(operations.size() >= 110);
  for (const std::string& name : reference::operation_names())
    CHECK_MESSAGE(operations.contains(name), "operation '" << name << "' has no case in tests/reference/cases");
  for (const std::string& name : reference::model_names())
    CHECK_MESSAGE(models.contains(name), "model '" << name << "' has no row in tests/reference/models.json");

  // Its random numbers differ from PyTorch's, so no case covers it.
  on_graph.insert("dropout");
  for (const std::string& name : test::differentiable_operations())
    CHECK_MESSAGE(on_graph.contains(name), "operation '" << name << "' is behind no case of tests/reference/cases");
}

TEST_CASE("the program says what it has checked") {
  const TemporaryFolder folder;
  const std::string file = folder / "results.json";
  const test::Outcome outcome = run_program("check --all --only softmax --json " + file);
  CHECK_MESSAGE(outcome.status == 0, outcome.output);
  CHECK(contains(outcome.output, "cases over 2 ops and 0 models passed, 0 failed, 0 skipped"));
  std::ifstream in(file);
  const nlohmann::json rows = nlohmann::json::parse(in).at("results");
  REQUIRE(rows.size() > 10);
  for (const char* key : {"case", "op", "dtype", "device", "passed", "max_abs", "max_rel", "cosine", "bound"})
    CHECK_MESSAGE(rows[0].contains(key), key);
  CHECK(rows[0].at("passed") == true);
  CHECK(run_program("check --all --only softmax --dtype bfloat16").status == 0);
}

TEST_CASE("a changed number, another shape and another dtype in a fixture are found, and the tensor is named") {
  const TemporaryFolder folder;
  copy_family(folder, "softmax");
  const std::string file = folder / "fixtures/softmax.safetensors";
  CHECK(check_copy(folder).status == 0);
  rewrite(file, [](Safetensors& all) {
    Tensor& gradient = find(all, "softmax/first/float64/grad.0");
    gradient.select(0, 1).select(0, 2).fill_(gradient.select(0, 1).select(0, 2).item() + 1e-9);
    Tensor& twice = find(all, "log_softmax/last/float64/double.grad_output.0");
    twice = twice.slice(0, 0, 1).clone();
    Tensor& output = find(all, "softmax/equal/float32/output.0");
    output = output.to(kFloat64);
  });
  const test::Outcome outcome = check_copy(folder);
  CHECK(outcome.status == 1);
  for (const char* part : {"FAILED softmax/first/float64", "grad.0 ", "[1,2]: ", "FAILED log_softmax/last/float64",
                           "double.grad_output.0", "expected the shape [1, 4], got [3, 4]",
                           "FAILED softmax/equal/float32", "expected the dtype float64, got float32", "3 failed"}) {
    CHECK_MESSAGE(contains(outcome.output, part), part << " is not in\n" << outcome.output);
  }
}

TEST_CASE(
    "a missing fixture, another row, an unknown operation, an argument nobody reads and a case too many are failures") {
  const TemporaryFolder folder;
  copy_family(folder, "softmax");
  const std::string cases = folder / "cases/softmax.json", fixture = folder / "fixtures/softmax.safetensors";
  const auto fails_with = [&](const std::string& part) {
    const test::Outcome outcome = check_copy(folder);
    CHECK(outcome.status == 1);
    CHECK_MESSAGE(contains(outcome.output, part), part << " is not in\n" << outcome.output);
  };
  replace_text(cases, "\"name\": \"first\", \"inputs\": [\"normal [3,4]\"]",
               "\"name\": \"first\", \"inputs\": [\"normal [4,3]\"]");
  fails_with("was made from another row");
  replace_text(cases, "\"name\": \"first\", \"inputs\": [\"normal [4,3]\"]",
               "\"name\": \"another\", \"inputs\": [\"normal [3,4]\"]");
  fails_with("has no case of this name");
  fails_with("has this case, the table has not");
  replace_text(cases, "\"log_softmax\"", "\"no_such_softmax\"");
  fails_with("'no_such_softmax' is not known");
  fs::remove(fixture);
  fails_with("softmax.safetensors");

  const std::string file = folder / "op.safetensors";
  write_op(file, "softmax", "softmax/first/float64");
  rewrite(file, [](Safetensors& all) { all.metadata["arguments"] = "{\"dim\": 0, \"half_to_float\": true}"; });
  const test::Outcome outcome = run_program("check " + file);
  CHECK(outcome.status == 2);
  CHECK(contains(outcome.output, "did not look at the argument 'half_to_float'"));
}

TEST_CASE("a user's file of an operation is checked, in its dtype or another") {
  const TemporaryFolder folder;
  const std::string file = folder / "conv.safetensors";
  write_op(file, "conv", "conv2d/stride padding/float64");
  test::Outcome outcome = run_program("check " + file);
  CHECK_MESSAGE(outcome.status == 0, outcome.output);
  for (const char* part : {"op conv2d in float64", "output.0", "grad.2", "double.1", "11 of 11 tensors agree"})
    CHECK_MESSAGE(contains(outcome.output, part), part << " is not in\n" << outcome.output);
  CHECK(run_program("check " + file + " --op conv2d --dtype float32").status == 0);

  // Without its padding the result has another shape, and a tensor that the operation does not produce is named.
  rewrite(file, [](Safetensors& all) {
    all.metadata["arguments"] = "{\"stride\": [2, 1]}";
    all.tensors.emplace_back("grad.7", scalar_tensor<double>(1.0));
  });
  const std::string json = folder / "rows.json";
  outcome = run_program("check " + file + " --json " + json);
  CHECK(outcome.status != 0);
  CHECK(contains(outcome.output, "shape"));
}

TEST_CASE("what a file of an operation leaves out is not compared") {
  const TemporaryFolder folder;
  const std::string file = folder / "conv.safetensors";
  const auto without = [&](const std::vector<std::string>& prefixes) {
    write_op(file, "conv", "conv2d/stride padding/float64");
    rewrite(file, [&](Safetensors& all) {
      std::erase_if(all.tensors, [&](const auto& named) {
        return std::any_of(prefixes.begin(), prefixes.end(),
                           [&](const std::string& prefix) { return named.first.starts_with(prefix); });
      });
    });
    return run_program("check " + file);
  };
  const auto agrees = [&](const std::vector<std::string>& prefixes, const std::string& summary) {
    const test::Outcome outcome = without(prefixes);
    CAPTURE(outcome.output);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.output, summary));
  };
  agrees({"output."}, "10 of 10 tensors agree");
  agrees({"grad", "double."}, "1 of 1 tensors agree");
  agrees({"grad_weight.", "double."}, "4 of 4 tensors agree");
  agrees({"double.grad_output."}, "10 of 10 tensors agree");
  agrees({"grad.2", "grad_weight.2", "double."}, "5 of 5 tensors agree");

  test::Outcome outcome = without({"output.", "grad", "double."});
  CHECK(outcome.status == 2);
  CHECK(contains(outcome.output, "there is nothing to compare: expected results as output.0"));
  outcome = without({"grad_output."});
  CHECK(outcome.status == 2);
  CHECK(contains(outcome.output, "no grad_output.0 to start from"));

  // A single result with one element needs no grad_output, and inputs may be omitted.
  save_safetensors(file, {{"input.0", tensor<double>({1, 2})}, {"grad.0", tensor<double>({1, 1})}}, {{"op", "sum"}});
  outcome = run_program("check " + file);
  CAPTURE(outcome.output);
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.output, "grad.0"));
}

TEST_CASE("a user's file of a model is checked: loss and gradients of one step") {
  const TemporaryFolder folder;
  for (const std::string model : {"mlp", "cnn", "unet", "gpt"}) {
    const std::string file = folder / (model + ".safetensors");
    write_step(file, model);
    const test::Outcome outcome = run_program("check " + file);
    CHECK_MESSAGE(outcome.status == 0, outcome.output);
    CHECK(contains(outcome.output, "model " + model + " in float64"));
    CHECK(contains(outcome.output, "\nloss "));
  }
  const std::string file = folder / "mlp.safetensors";
  const std::string json = folder / "rows.json";
  rewrite(file, [](Safetensors& all) { find(all, "grad.layers.1.weight").select(0, 0).select(0, 3).fill_(7); });
  test::Outcome outcome = run_program("check " + file + " --json " + json);
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.output, "NO   [0,3]: "));
  std::ifstream in(json);
  const nlohmann::json results = nlohmann::json::parse(in).at("results");
  CHECK(results.size() > 1);
  for (const nlohmann::json& row : results) {
    CHECK(row.at("passed") == (row.at("tensor") != "grad.layers.1.weight"));
    CHECK(row.at("model") == "mlp");
  }
  CHECK(run_program("check " + file + " --bound 100").status == 0);
}

TEST_CASE("what a model and a file do not share is named") {
  const TemporaryFolder folder;
  const std::string file = folder / "mlp.safetensors";
  const auto fails_with = [&](const std::string& part, const std::function<void(Safetensors&)>& change) {
    write_step(file, "mlp");
    rewrite(file, change);
    const test::Outcome outcome = run_program("check " + file);
    CHECK(outcome.status == 1);
    CHECK_MESSAGE(contains(outcome.output, part), part << " is not in\n" << outcome.output);
  };
  const auto drop = [](Safetensors& all, const std::string& name) {
    std::erase_if(all.tensors, [&](const auto& named) { return named.first == name; });
  };
  fails_with("missing: the module has", [&](Safetensors& all) { drop(all, "parameter.layers.0.bias"); });
  fails_with("additional: the file has", [&](Safetensors& all) {
    all.tensors.emplace_back("parameter.layers.9.bias", scalar_tensor<double>(1.0));
  });
  fails_with("additional: float64 [8] is expected by nobody",
             [&](Safetensors& all) { drop(all, "grad.layers.1.bias"); });
  fails_with("missing: expected float64 []",
             [&](Safetensors& all) { all.tensors.emplace_back("grad.layers.9.bias", scalar_tensor<double>(1.0)); });
}

TEST_CASE("files and arguments that make no sense get clear errors") {
  const TemporaryFolder folder;
  const std::string file = folder / "a.safetensors";
  const auto says = [&](const std::string& arguments, int status, const std::string& part) {
    const test::Outcome outcome = run_program("check " + arguments);
    CHECK_MESSAGE(outcome.status == status, arguments << ": " << outcome.output);
    CHECK_MESSAGE(contains(outcome.output, part), part << " is not in\n" << outcome.output);
  };
  says("", 2, "give either --all or a file");
  says("/no/such/file.safetensors", 3, "/no/such/file.safetensors");
  test::write_bytes(file, "not a safetensors file");
  says(file, 3, file);
  save_safetensors(file, {{"input.0", scalar_tensor<double>(1.0)}});
  says(file, 2, "give one of --model and --op");
  says(file + " --model no_such_model", 2, "known are cnn, gan, gpt, mlp, unet");
  says(file + " --op no_such_op", 2, "'no_such_op' is not known");
  says(file + " --op relu --model mlp", 2, "either --model or --op");
  save_safetensors(file, {{"input.0", scalar_tensor<double>(1.0)}}, {{"op", "relu"}, {"arguments", "7"}});
  says(file, 2, "must be a JSON object");
  const std::string deep = std::string(3'000'000, '[') + std::string(3'000'000, ']');
  save_safetensors(file, {{"input.0", scalar_tensor<double>(1.0)}},
                   {{"model", "mlp"}, {"arguments", "{\"sizes\": " + deep + "}"}});
  says(file, 2, "must be a JSON object, and is \"{\\\"sizes\\\": [[[");
  // A small file must not request a large model.
  const nn::Named<Tensor> tensors = {{"input.0", tensor<int64_t>({1, 2, 3})}};
  const std::string gpt = R"("vocabulary": 3, "positions": 3, "width": 1, "heads": 1)";
  for (const std::string& arguments :
       std::initializer_list<std::string>{"{" + gpt + R"(, "blocks": 1000000000})", "{" + gpt + R"(, "blocks": -1})",
                                          R"({"sizes": [3, 1000000000]})", R"({"sizes": 18446744073709551615})"}) {
    save_safetensors(file, tensors, {{"model", "gpt"}, {"arguments", arguments}});
    says(file, 2, "; expected from 0 to 3, the largest size in the file");
  }
  save_safetensors(file, tensors, {{"model", "cnn"}, {"arguments", R"({"channels": [1], "classes": 2})"}});
  says(file, 2, "argument 'channels': expected a list of 3 integers, got 1");
  // Control characters in a file do not reach the terminal.
  save_safetensors(file, {{"input.\x1b[2J", scalar_tensor<double>(1.0)}}, {{"op", "relu"}});
  says(file, 2, "this has \"input.\\x1b[2J\"");
  save_safetensors(file, {{"input.0", scalar_tensor<double>(1.0)}}, {{"op", "\x1b[2J"}});
  says(file, 2, "'\\x1b[2J' is not known");
  save_safetensors(file, {{"input.x", scalar_tensor<double>(1.0)}}, {{"op", "relu"}});
  says(file, 2, "input.x");
  says("--all --only no_such_case", 2, "no case is in 'no_such_case'");
  says("--all --dtype float12", 2, "float12");
}

}  // namespace brigade::test::check_test
