// Compares the table of autocast rules with PyTorch's lists (generate_op_lists.py).
#include <brigade/amp/autocast.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace brigade::test::op_lists_test {

using amp::CastRule;
using amp::ListedOperation;
using nlohmann::json;

json torch_lists() {
  std::ifstream in(BRIGADE_TEST_DATA "/torch_op_lists.json");
  REQUIRE(in);
  return json::parse(in);
}

std::vector<std::string> torch_names(const ListedOperation& operation) {
  std::vector<std::string> names;
  std::istringstream list(operation.torch);
  for (std::string name; std::getline(list >> std::ws, name, ',');)
    names.push_back(name);
  return names;
}

// PyTorch's rule for the operation, "not listed" where it has none.
std::string torch_rule(const json& lists, const char* device, const std::string& name) {
  return lists.at(device).value(name, "not listed");
}

// PyTorch's names of operations that Brigade does not have. When Brigade adds one of them, its name has to move to the
// table.
const std::set<std::string> kMissingHere = {"_addmm_activation",
                                            "_convolution",
                                            "_cudnn_rnn",
                                            "_grid_sampler_2d_cpu_fallback",
                                            "_lu_with_info",
                                            "_native_multi_head_attention",
                                            "_scaled_dot_product_flash_attention",
                                            "_thnn_fused_gru_cell",
                                            "_thnn_fused_lstm_cell",
                                            "_upsample_bicubic2d_aa",
                                            "_upsample_bilinear2d_aa",
                                            "_upsample_nearest_exact1d",
                                            "_upsample_nearest_exact2d",
                                            "_upsample_nearest_exact3d",
                                            "adaptive_avg_pool3d",
                                            "adaptive_max_pool3d",
                                            "addr",
                                            "avg_pool3d",
                                            "cdist",
                                            "chain_matmul",
                                            "cholesky_inverse",
                                            "cholesky_solve",
                                            "conv3d",
                                            "conv_tbc",
                                            "conv_transpose3d",
                                            "convolution",
                                            "cross",
                                            "ctc_loss",
                                            "cudnn_convolution",
                                            "cudnn_convolution_transpose",
                                            "dist",
                                            "erfinv",
                                            "fake_quantize_per_tensor_affine",
                                            "fractional_max_pool2d",
                                            "fractional_max_pool3d",
                                            "frobenius_norm",
                                            "geqrf",
                                            "grid_sampler",
                                            "grid_sampler_2d",
                                            "grid_sampler_3d",
                                            "gru_cell",
                                            "index_put",
                                            "inverse",
                                            "lstm_cell",
                                            "lu_solve",
                                            "max_pool3d",
                                            "max_unpool2d",
                                            "max_unpool3d",
                                            "mkldnn_rnn_layer",
                                            "multi_margin_loss",
                                            "multilabel_margin_loss",
                                            "multilabel_margin_loss_forward",
                                            "nanquantile",
                                            "native_layer_norm",
                                            "nuclear_norm",
                                            "orgqr",
                                            "ormqr",
                                            "pdist",
                                            "pinverse",
                                            "polar",
                                            "quantile",
                                            "renorm",
                                            "rnn_relu_cell",
                                            "rnn_tanh_cell",
                                            "stft",
                                            "svd",
                                            "tensordot",
                                            "triangular_solve",
                                            "upsample_bicubic2d",
                                            "upsample_nearest3d",
                                            "upsample_trilinear3d",
                                            "vdot",
                                            "view_as_complex"};
bool is_missing_here(const std::string& name) {
  const bool of_a_family = name.starts_with("fft_") || (name.starts_with("linalg_") && !name.ends_with("_norm"));
  return of_a_family || kMissingHere.contains(name);
}

TEST_CASE("each rule is that of PyTorch's operation, on the CPU and on CUDA") {
  const json lists = torch_lists();
  CHECK(lists.at("torch") == "2.15.0");
  for (const ListedOperation& operation : amp::op_lists()) {
    for (const DeviceType device : {kCPU, kCUDA}) {
      CAPTURE(operation.name);
      CAPTURE(name(device));
      const CastRule rule = operation.rule(device);
      const bool here = rule != CastRule::Unlisted && rule != CastRule::AsIs;
      bool found = false;
      for (const std::string& torch : torch_names(operation)) {
        CAPTURE(torch);
        const std::string theirs = torch_rule(lists, name(device), torch);
        if (theirs == "not listed") continue;
        found = true;
        CHECK(theirs == amp::name(rule));
      }
      CHECK(found == here);
    }
  }
}

TEST_CASE("every operation of PyTorch's lists that Brigade has is in the table") {
  const json lists = torch_lists();
  std::set<std::string> known;
  for (const ListedOperation& operation : amp::op_lists())
    for (const std::string& torch : torch_names(operation))
      known.insert(torch);
  for (const char* device : {"cpu", "cuda"}) {
    CHECK(lists.at(device).size() > 100);
    for (const auto& [torch, rule] : lists.at(device).items())
      CHECK_MESSAGE((known.contains(torch) != is_missing_here(torch)), device << ": " << torch);
  }
}

TEST_CASE("names are there once, and a rule that is not PyTorch's own says why") {
  std::set<std::string> names;
  for (const ListedOperation& operation : amp::op_lists()) {
    CAPTURE(operation.name);
    CHECK(names.insert(operation.name).second);
    CHECK((operation.name == std::string(operation.torch) || operation.why != std::string() ||
           std::string(operation.torch).starts_with(operation.name) ||
           std::string(operation.torch).starts_with("linalg_")));
    CHECK(amp::cast_rule(operation.name, kCPU) == operation.cpu);
    CHECK(amp::cast_rule(operation.name, kCUDA) == operation.cuda);
  }
  CHECK(amp::cast_rule("relu", kCPU) == CastRule::Unlisted);
  CHECK(amp::cast_rule("no such operation", kCUDA) == CastRule::Unlisted);
}

}  // namespace brigade::test::op_lists_test
