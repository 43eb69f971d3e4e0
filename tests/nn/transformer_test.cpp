// Attention and transformers: the same parameters give the same numbers as PyTorch.
#include <nn/models.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::transformer_test {
using doctest::Contains;

namespace {

using Values = std::vector<double>;

// [f(0), f(1), ...] in row-major order.
template <class F>
Tensor made(const Shape& sizes, F&& f) {
  const Tensor x = zeros(sizes, kFloat64);
  for (int64_t i = 0; i < x.numel(); ++i)
    x.data_ptr<double>()[i] = f(static_cast<double>(i));
  return x;
}
Tensor wave(const Shape& sizes, double seed) {
  return made(sizes, [&](double i) { return std::cos(1.3 * i + seed); });
}
// Parameter k starts as 0.3 sin(0.7 i + k); the weights of norms start as that plus 1.
void fill(nn::Module& module) {
  double k = 0;
  for (const auto& [name, parameter] : module.named_parameters()) {
    const bool norm =
        (name.find("norm") != std::string::npos || name.find("ln_") != std::string::npos) && name.ends_with("weight");
    parameter.detach().copy_(
        made(parameter.sizes(), [&](double i) { return 0.3 * std::sin(0.7 * i + k) + (norm ? 1 : 0); }));
    ++k;
  }
}
Values pick(const Tensor& tensor, std::initializer_list<int64_t> at) {
  const auto all = doubles(tensor);
  Values some;
  for (const int64_t i : at)
    some.push_back(all[static_cast<size_t>(i < 0 ? i + tensor.numel() : i)]);
  return some;
}
Values gradient_sizes(const nn::Module& module) {
  Values sums;
  for (const Tensor& parameter : module.parameters()) {
    double sum = 0;
    for (const double g : doubles(parameter.grad()))
      sum += std::abs(g);
    sums.push_back(sum);
  }
  return sums;
}
double total(const Tensor& tensor) { return tensor.sum().item(); }
void check_close(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(found[i] - expected[i]) <= 1e-12 * std::max(1.0, std::abs(expected[i])));
  }
}
void backward(const Tensor& y) { (y * wave(y.sizes(), 5)).sum().backward(); }

Tensor bools(const std::vector<int64_t>& values, const Shape& sizes) { return ne(tensor(values, sizes), 0.0); }
// 0 where `masked` is false, minus infinity where it is true.
Tensor infinite(const Tensor& masked) { return log(eq(masked, 0.0).to(kFloat64)); }

const Tensor kPadding = bools({0, 0, 1, 0, 1, 1}, {2, 3});

}  // namespace

TEST_CASE("MultiheadAttention gives PyTorch's results, weights and gradients") {
  struct Case {
    const char* name;
    nn::MultiheadAttentionOptions options;
    std::vector<Shape> sizes;
    nn::AttentionMasks masks;
    Values output, weights, gradients, of_parameters;
  };
  using Options = nn::MultiheadAttentionOptions;
  const std::vector<Shape> usual{{2, 2, 4}, {3, 2, 4}, {3, 2, 4}};
  const Tensor attn_mask = bools({0, 1, 0, 0, 0, 1}, {2, 3});
  const std::vector<Case> cases{
      {"plain",
       Options{},
       usual,
       {},
       {0.041886844914916316, -0.4424034542602638, -0.4462400840383739, -0.43546908783172966},
       {0.29166394420463293, 0.43800832959093006, 0.2703277262044369, 0.4438407014296418},
       {0.013896401524261819, 2.4936649967166602e-18, 0.13509664948681255},
       {0.9344009033272962, 0.6100900861919196, 4.197814605978967, 4.0306126472961665}},
      {"per head",
       Options{},
       usual,
       {.average_attn_weights = false},
       {0.041886844914916316, -0.4424034542602638, -0.4462400840383739, -0.43546908783172966},
       {0.30662068724392616, 0.4517097401529096, 0.24166957260316418, 0.4645300964573189},
       {0.013896401524261819, 2.4936649967166602e-18, 0.13509664948681255},
       {0.9344009033272962, 0.6100900861919196, 4.197814605978967, 4.0306126472961665}},
      {"padding",
       Options{},
       usual,
       {.key_padding_mask = kPadding},
       {0.08376370968160121, -0.46459544049670914, -0.48505163417556263, -0.48505163417556263},
       {0.3995303346873129, 0.6004696653126871, 0.0, 0.0},
       {0.0036077865810910333, -3.577867169202165e-18, 0.13509664948681255},
       {1.130566770630472, 0.5910140420848801, 3.992141582417679, 4.0306126472961665}},
      {"padding, no weights",
       Options{},
       usual,
       {.key_padding_mask = kPadding, .need_weights = false},
       {0.08376370968160121, -0.4645954404967092, -0.48505163417556263, -0.48505163417556263},
       {},
       {0.003607786581091033, -2.8189256484623115e-18, 0.13509664948681255},
       {1.130566770630472, 0.5910140420848801, 3.9921415824176787, 4.0306126472961665}},
      {"bool mask",
       Options{},
       usual,
       {.need_weights = false, .attn_mask = attn_mask},
       {-0.02115802538461868, -0.4286592508997439, -0.45734118944859536, -0.45431412651153635},
       {},
       {0.012798535276905994, -4.228388472693467e-18, 0.13509664948681255},
       {2.1720569099681555, 0.6104934459581755, 6.255239272590238, 4.0306126472961665}},
      {"float mask",
       Options{},
       usual,
       {.attn_mask = wave({2, 3}, 2)},
       {0.012936532837637314, -0.4329163643406735, -0.44729931693447184, -0.4507651770110672},
       {0.32253406246017813, 0.2734599370265762, 0.4040060005132456, 0.16836755631129247},
       {0.015388958697887607, -1.441988889405721e-17, 0.13509664948681252},
       {1.0620379619082052, 0.6131089284030791, 4.361590819332532, 4.0306126472961665}},
      {"float 3d mask and padding",
       Options{},
       usual,
       {.key_padding_mask = infinite(kPadding), .attn_mask = wave({4, 2, 3}, 2)},
       {0.1253214889000958, -0.5024472344210364, -0.48505163417556263, -0.48505163417556263},
       {0.3669921320831884, 0.6330078679168116, 0.0, 0.0},
       {0.0032442830243359826, -4.553649124439119e-18, 0.13509664948681255},
       {1.2834970454563, 0.5870366057250677, 4.690915960766242, 4.0306126472961665}},
      {"batch first",
       Options{.batch_first = true},
       {{2, 2, 4}, {2, 3, 4}, {2, 3, 4}},
       {},
       {0.09650086407120782, -0.4714199368440632, -0.4728160560471256, -0.40982537246869327},
       {0.259644047964806, 0.3499732592921536, 0.3903826927430404, 0.3868918388434499},
       {0.003597881150608967, -9.432558900623889e-18, 0.13509664948681258},
       {2.364277952399328, 0.5936140290202515, 8.392249418073792, 4.030612647296166}},
      {"widths",
       Options{.kdim = 3, .vdim = 5},
       {{2, 2, 4}, {3, 2, 3}, {3, 2, 5}},
       {},
       {-0.23714311641891445, 0.14867304306514084, 0.15124130569005112, 0.15815655990800015},
       {0.3782776936509783, 0.3136685507693876, 0.3080537555796341, 0.3519664614603748},
       {0.0013884647846796406, 7.426784881525705e-18, -0.05142299718873028},
       {0.02970309252891612, 0.022336702373650555, 1.8377782147732922, 0.6225599995128673, 6.343378206482651,
        4.0306126472961665}},
      {"no bias, no batch",
       Options{.bias = false},
       {{2, 4}, {3, 4}, {3, 4}},
       {},
       {0.032414890109494277, 0.0366751145026169, 0.03262351246708256, 0.03262351246708256},
       {0.2552001956723617, 0.3517780220216282, 0.39302178230601004, 0.3684280679887125},
       {0.002262454817103003, 1.0842021724855044e-18, 0.18807124153364313},
       {1.3058678253719824, 3.9188585531757116}},
  };
  for (const Case& each : cases) {
    CAPTURE(each.name);
    Options options = each.options;
    options.embed_dim = 4;
    options.num_heads = 2;
    options.dtype = kFloat64;
    nn::MultiheadAttention attention(options);
    fill(*attention);
    std::vector<Tensor> x;
    for (size_t i = 0; i < 3; ++i)
      x.push_back(wave(each.sizes[i], static_cast<double>(i)).requires_grad_());
    const auto [y, weights] = attention(x[0], x[1], x[2], each.masks);
    CHECK(y.sizes() == x[0].sizes());
    backward(y);
    check_close(pick(y, {0, 3, 7, -1}), each.output);
    CHECK(weights.defined() == each.masks.need_weights);
    if (weights.defined()) check_close(pick(weights, {0, 1, 2, -1}), each.weights);
    check_close({total(x[0].grad()), total(x[1].grad()), total(x[2].grad())}, each.gradients);
    check_close(gradient_sizes(*attention), each.of_parameters);
  }
}

TEST_CASE("causal attention of a sequence to itself: with a flag, with a mask, with weights") {
  const Tensor causal = infinite(bools({0, 1, 1, 0, 0, 1, 0, 0, 0}, {3, 3}));
  const auto expected =
      std::vector<Values>{{0.11362584827604043, -0.4844516978845478, -0.475623804976894, -0.4302551960647497},
                          {},
                          {-0.007707712861988934},
                          {4.103050731284495, 0.08363067839405096, 11.719209782733266, 0.5717099709116835}};
  for (const nn::AttentionMasks& masks :
       {nn::AttentionMasks{.need_weights = false, .is_causal = true},
        nn::AttentionMasks{.need_weights = false, .attn_mask = causal, .is_causal = true},
        nn::AttentionMasks{.need_weights = false, .attn_mask = causal}, nn::AttentionMasks{.is_causal = true}}) {
    nn::MultiheadAttention attention({.embed_dim = 4, .num_heads = 2, .batch_first = true, .dtype = kFloat64});
    fill(*attention);
    const Tensor x = wave({2, 3, 4}, 1).requires_grad_();
    const auto [y, weights] = attention(x, x, x, masks);
    backward(y);
    check_close(pick(y, {0, 3, 7, -1}), expected[0]);
    check_close({total(x.grad())}, expected[2]);
    check_close(gradient_sizes(*attention), expected[3]);
    if (weights.defined()) CHECK(pick(weights, {1, 2, 5}) == Values{0, 0, 0});
  }
}

TEST_CASE("MultiheadAttention: names, where it starts, and what it refuses") {
  manual_seed(3);
  nn::MultiheadAttention same(64, 8), other({.embed_dim = 8, .num_heads = 2, .kdim = 6});
  CHECK(names_of(same->named_parameters()) ==
        std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"});
  CHECK(names_of(other->named_parameters()) == std::vector<std::string>{"q_proj_weight", "k_proj_weight",
                                                                        "v_proj_weight", "in_proj_bias",
                                                                        "out_proj.weight", "out_proj.bias"});
  double largest = 0;
  for (const double w : doubles(same->in_proj_weight))
    largest = std::max(largest, std::abs(w));
  const double bound = std::sqrt(6.0 / (4 * 64));
  CHECK(largest <= bound * (1 + 1e-6));
  CHECK(largest > 0.99 * bound);
  CHECK(total(same->in_proj_bias) == 0);
  CHECK(total(same->out_proj->bias) == 0);
  const auto make = [](const nn::MultiheadAttentionOptions& options) { nn::MultiheadAttention made(options); };
  CHECK_THROWS_WITH_AS(make({.embed_dim = 5, .num_heads = 2}), "embed_dim must be divisible by num_heads, got 5 and 2",
                       ValueError);
  CHECK_THROWS_AS(make({.embed_dim = 4}), ValueError);
  CHECK_THROWS_AS(make({.embed_dim = 4, .num_heads = 2, .dropout = 2}), ValueError);
  nn::MultiheadAttention small(4, 2);
  const Tensor x = zeros({3, 2, 4});
  CHECK_THROWS_AS(small(zeros({4}), x, x), ShapeError);
  CHECK_THROWS_WITH_AS(small(x, zeros({3, 2, 5}), x), Contains("a key of 3 dimensions, the last of size 4"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(small(x, zeros({5, 2, 4}), x), Contains("key and value one length"), ShapeError);
  CHECK_THROWS_AS(small(x, zeros({3, 1, 4}), zeros({3, 1, 4})), ShapeError);
  CHECK_THROWS_WITH_AS(small(x, x, x, nn::AttentionMasks{.key_padding_mask = zeros({3, 2})}),
                       Contains("expected a key_padding_mask [2, 3], got float32 [3, 2]"), ShapeError);
  CHECK_THROWS_WITH_AS(small(x, x, x, nn::AttentionMasks{.attn_mask = zeros({2, 3})}),
                       Contains("expected an attn_mask [3, 3] or [4, 3, 3]"), ShapeError);
}

TEST_CASE("dropout of the weights is for training only") {
  manual_seed(1);
  nn::MultiheadAttention attention({.embed_dim = 4, .num_heads = 2, .dropout = 0.5, .dtype = kFloat64});
  const Tensor x = wave({6, 2, 4}, 0);
  const auto zeros_in = [&](const nn::AttentionMasks& masks) {
    int64_t count = 0;
    for (const double w : doubles(attention(x, x, x, masks).weights))
      count += w == 0;
    return count;
  };
  CHECK(zeros_in({.average_attn_weights = false}) > 20);
  const auto without = [&] { return doubles(attention(x, x, x, nn::AttentionMasks{.need_weights = false}).output); };
  CHECK(without() != without());
  attention->eval();
  CHECK(zeros_in({.average_attn_weights = false}) == 0);
  CHECK(without() == without());
}

TEST_CASE("TransformerEncoderLayer gives PyTorch's results and gradients, and has its names") {
  struct Case {
    nn::TransformerEncoderLayerOptions options;
    Values output, gradient, of_parameters;
  };
  using Options = nn::TransformerEncoderLayerOptions;
  const std::vector<Case> cases{
      {Options{},
       {1.0582155957604082, 0.15829600570502164, -0.5177123662782345, 1.2180744652749649},
       {-0.19792253447898844},
       {4.99857480070027, 0.8986897053280938, 11.13400863010374, 3.0593542618960154, 6.274875941536316,
        1.14215916466694, 6.276447964823519, 1.6092422079735338, 1.057732862535464, 1.3744397030105877,
        10.826583772074471, 0.5717099709116832}},
      {Options{.activation = nn::TransformerActivation::GELU, .layer_norm_eps = 1e-3, .norm_first = true},
       {1.010121328237831, -0.11871971217714983, -1.0324699313515866, 0.5718801030614331},
       {0.08069247464983773},
       {6.217047972013238, 0.09691375964664325, 13.565033745841044, 0.4091066600608952, 10.304379558415555,
        1.6403679427017075, 10.257731584927269, 0.5717099709116834, 0.20431596365911656, 0.024044436028765038,
        0.29299021607507203, 1.0891174439897335}},
      {Options{.bias = false},
       {0.84996435035891, 0.9358397626297607, -1.2055192064135742, 1.9970793646881604},
       {0.023341536124378726},
       {7.700441983521468, 13.215071600152509, 7.9998018208248025, 6.878362156743551, 1.4832313529734895,
        11.290211285520975}},
  };
  for (const Case& each : cases) {
    Options options = each.options;
    options.d_model = 4;
    options.nhead = 2;
    options.dim_feedforward = 6;
    options.dropout = 0;
    options.batch_first = true;
    options.dtype = kFloat64;
    nn::TransformerEncoderLayer layer(options);
    fill(*layer);
    const Tensor x = wave({2, 3, 4}, 1).requires_grad_();
    const Tensor y = layer(x, nn::TransformerMasks{.src_mask = bools({0, 1, 1, 0, 0, 1, 0, 0, 0}, {3, 3}),
                                                   .src_key_padding_mask = bools({0, 0, 0, 0, 0, 1}, {2, 3})});
    backward(y);
    check_close(pick(y, {0, 3, 7, -1}), each.output);
    check_close({total(x.grad())}, each.gradient);
    check_close(gradient_sizes(*layer), each.of_parameters);
  }
  CHECK(names_of(nn::TransformerEncoderLayer(4, 2)->named_parameters()) ==
        std::vector<std::string>{"self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
                                 "self_attn.out_proj.bias", "linear1.weight", "linear1.bias", "linear2.weight",
                                 "linear2.bias", "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"});
  CHECK_THROWS_AS(nn::TransformerEncoderLayer({.d_model = 4, .nhead = 2, .dim_feedforward = 0}), ValueError);
}

TEST_CASE("TransformerEncoder gives PyTorch's results; its layers start alike") {
  const nn::TransformerEncoderLayerOptions options{
      .d_model = 4, .nhead = 2, .dim_feedforward = 6, .dropout = 0, .dtype = kFloat64};
  nn::TransformerEncoder encoder(options, 2, true);
  CHECK(doubles((*encoder->layers)[0]->linear1->weight) == doubles((*encoder->layers)[1]->linear1->weight));
  fill(*encoder);
  const Tensor x = wave({3, 2, 4}, 1).requires_grad_();
  const Tensor y = encoder(x);
  backward(y);
  const auto expected =
      std::vector<Values>{{1.1405354819947076, 0.31868158775283667, -0.2463183679707424, 1.176903234127115},
                          {-0.4774882460788178},
                          {87.96103109771866}};
  check_close(pick(y, {0, 3, 7, -1}), expected[0]);
  check_close({total(x.grad())}, expected[1]);
  double sum = 0;
  for (const double each : gradient_sizes(*encoder))
    sum += each;
  check_close({sum}, expected[2]);
  CHECK(encoder->named_parameters().back().first == "norm.bias");
  CHECK_THROWS_AS(nn::TransformerEncoder(options, 0), ValueError);
}

TEST_CASE("GPT with tied weights gives PyTorch's logits, loss and gradients, its blocks kept or run again") {
  const auto expected =
      std::vector<Values>{{0.06780824126934482, 0.5416155099395752, -0.17065520746864035, -0.6660497175307751},
                          {2.254804754366756},
                          {-0.14724178088127743, 0.02342558275798094, -0.10735478928181239, 0.11405433212708123},
                          {13.310146060153954}};
  for (const bool checkpoint_blocks : {false, true}) {
    nn::GPT model({.vocab_size = 7,
                   .block_size = 5,
                   .n_layer = 2,
                   .n_head = 2,
                   .n_embd = 4,
                   .checkpoint_blocks = checkpoint_blocks,
                   .dtype = kFloat64});
    fill(*model);
    const Tensor tokens = tensor(std::vector<int64_t>{0, 3, 6, 1, 2, 2, 5, 4}, {2, 4});
    const Tensor targets = tensor(std::vector<int64_t>{3, 6, 1, 0, 2, 5, 4, 4}, {8});
    const Tensor logits = model(tokens);
    const Tensor loss = cross_entropy(logits.reshape({8, 7}), targets);
    loss.backward();
    check_close(pick(logits, {0, 3, 7, -1}), expected[0]);
    check_close({loss.item()}, expected[1]);
    check_close(pick(model->wte->weight.grad(), {0, 5, 9, -1}), expected[2]);
    double sum = 0;
    for (const double each : gradient_sizes(*model))
      sum += each;
    check_close({sum}, expected[3]);
    CHECK(model->parameters().size() == 28);
    CHECK_THROWS_WITH_AS(model(zeros({1, 6}, kInt64)), Contains("a length of at most 5"), ShapeError);
  }
  CHECK_THROWS_AS(nn::GPTBlock(nn::GPTOptions{.n_head = 3, .n_embd = 4}), ValueError);
}

TEST_CASE("a new GPT: deviations of 0.02, smaller into the residual stream, and no bias") {
  manual_seed(2);
  nn::GPT model({.vocab_size = 300, .block_size = 20, .n_layer = 2, .n_head = 2, .n_embd = 64});
  const auto deviation = [](const Tensor& weight) {
    double sum = 0;
    for (const double w : doubles(weight))
      sum += w * w;
    return std::sqrt(sum / static_cast<double>(weight.numel()));
  };
  CHECK(deviation(model->wte->weight) == doctest::Approx(0.02).epsilon(0.03));
  CHECK(deviation((*model->h)[1]->c_attn->weight) == doctest::Approx(0.02).epsilon(0.03));
  CHECK(deviation((*model->h)[1]->mlp_proj->weight) == doctest::Approx(0.01).epsilon(0.03));
  CHECK(deviation((*model->h)[0]->c_attn->bias) == 0);
}

}  // namespace brigade::test::transformer_test
