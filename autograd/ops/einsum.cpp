// Each operand carries the labels of its dimensions. Dimensions that are no longer needed are removed (diagonals,
// sums), then two operands at a time are brought into the form [batch, rows, inner] x [batch, inner, columns].
#include <brigade/autograd/ops/matmul.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/reduce.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace brigade {
namespace {

// A letter's character code, or, for a dimension under an ellipsis, 256 + its distance from the
// last of them.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Operand {
  Tensor tensor;
  Labels labels;

  int place(Label label) const {
    return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
  }
  int64_t size(Label label) const { return contains(labels, label) ? tensor.sizes()[place(label)] : 1; }
};

std::string quoted(Label label) {
  if (label >= kEllipsis) return "'...' (dimension " + std::to_string(kEllipsis - label - 1) + " under it)";
  return std::string("'") + static_cast<char>(label) + "'";
}

// The subscripts of an operand, or of the output: letters, and kEllipsis for an ellipsis.
Labels parse(const std::string& equation, const std::string& part, const std::string& whose, SourceLocation where) {
  Labels labels;
  for (size_t i = 0; i < part.size(); ++i) {
    const auto letter = static_cast<unsigned char>(part[i]);
    if (letter == ' ') continue;
    if (std::isalpha(letter) != 0) {
      labels.push_back(letter);
    } else if (part.compare(i, 3, "...") == 0) {
      if (contains(labels, kEllipsis))
        throw ValueError(where, "einsum: found '...' twice for {} in \"{}\"", whose, equation);
      labels.push_back(kEllipsis);
      i += 2;
    } else {
      throw ValueError(where,
                       "einsum: found {} for {}, expected subscripts in a-z and A-Z, and at most one '...' in \"{}\"",
                       quoted(letter), whose, equation);
    }
  }
  return labels;
}

struct Equation {
  std::string text;
  std::vector<Labels> inputs;
  Labels output;
  bool has_output = false;
};

Equation parse_equation(const std::string& text, size_t operands, SourceLocation where) {
  Equation equation{.text = text, .inputs = {}, .output = {}, .has_output = false};
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  for (size_t begin = 0;;) {
    const size_t end = left.find(',', begin);
    equation.inputs.push_back(parse(text, left.substr(begin, end == std::string::npos ? end : end - begin),
                                    "operand " + std::to_string(equation.inputs.size()), where));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  if (equation.inputs.size() != operands) {
    throw ValueError(where, "einsum: expected as many operands as the equation has, {}, got {}, in \"{}\"",
                     equation.inputs.size(), operands, text);
  }
  if (arrow != std::string::npos) {
    equation.has_output = true;
    equation.output = parse(text, text.substr(arrow + 2), "the output", where);
  }
  return equation;
}

// Replaces the ellipsis with one label per dimension under it.
Labels spread_ellipsis(const Labels& labels, int64_t dims_under_it) {
  Labels result;
  for (const Label label : labels) {
    if (label != kEllipsis) {
      result.push_back(label);
      continue;
    }
    for (int64_t d = dims_under_it; d > 0; --d)
      result.push_back(kEllipsis + static_cast<Label>(d) - 1);
  }
  return result;
}

// Replaces each pair of dimensions with equal labels by its diagonal.
Operand with_diagonals(Operand operand, size_t position, SourceLocation where) {
  for (size_t i = 0; i < operand.labels.size(); ++i) {
    for (size_t j = i + 1; j < operand.labels.size(); ++j) {
      if (operand.labels[i] != operand.labels[j]) continue;
      const auto first = static_cast<int64_t>(i);
      const auto second = static_cast<int64_t>(j);
      if (operand.tensor.size(first) != operand.tensor.size(second)) {
        throw ShapeError(where, "einsum: subscript {} is repeated for operand {} but the sizes don't match, {} and {}",
                         quoted(operand.labels[i]), position, operand.tensor.size(first), operand.tensor.size(second));
      }
      Shape order;
      for (int d = 0; d < operand.tensor.dim(); ++d) {
        if (d != first && d != second) order.push_back(d);
      }
      order.push_back(first);
      order.push_back(second);
      const Label label = operand.labels[i];
      operand.tensor = autograd::detail::diagonal(operand.tensor.permute(order, where));
      operand.labels.erase(operand.labels.begin() + second);
      operand.labels.erase(operand.labels.begin() + first);
      operand.labels.push_back(label);
      return with_diagonals(std::move(operand), position, where);
    }
  }
  return operand;
}

// Sums over the dimensions that are not wanted. With an `other`, those of size 1 are dropped, and a 1 that it stretches.
Operand without_unused(const Operand& operand, const Labels& wanted, const Operand* other, SourceLocation where) {
  Shape summed, sizes;
  Operand result;
  for (size_t i = 0; i < operand.labels.size(); ++i) {
    const Label label = operand.labels[i];
    const bool is_one = other && operand.size(label) == 1;  // as in PyTorch, no sum, which would make integers int64
    if (contains(wanted, label) && !(is_one && contains(other->labels, label))) {
      result.labels.push_back(label);
      sizes.push_back(operand.size(label));
    } else if (!is_one) {
      summed.push_back(static_cast<int64_t>(i));
    }
  }
  result.tensor = summed.empty() ? operand.tensor : sum(operand.tensor, summed, true, where);
  if (result.tensor.dim() != sizes.size()) result.tensor = result.tensor.reshape(sizes, where);
  return result;
}

Tensor in_order(const Operand& operand, const Labels& labels, SourceLocation where) {
  Shape order;
  for (const Label label : labels)
    order.push_back(operand.place(label));
  return operand.tensor.permute(order, where);
}

// The operand with dimensions of size 1 for the labels that it does not have.
Tensor aligned(const Operand& operand, const Labels& labels, SourceLocation where) {
  Labels own;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(own),
               [&](Label label) { return contains(operand.labels, label); });
  Shape sizes;
  for (const Label label : labels)
    sizes.push_back(operand.size(label));
  return in_order(operand, own, where).reshape(sizes, where);
}

// The product of a and b, reduced to the wanted labels.
Operand multiply(Operand a, Operand b, const Labels& wanted, SourceLocation where) {
  // First sum over the labels that only one of them has and that are not wanted. A dimension of size 1 that the other
  // stretches is dropped, so that only the other has its label.
  const auto needed = [&](const Operand& other) {
    Labels labels = wanted;
    labels.insert(labels.end(), other.labels.begin(), other.labels.end());
    return labels;
  };
  a = without_unused(a, needed(b), &b, where);
  b = without_unused(b, needed(a), &a, where);
  a = without_unused(a, needed(b), &b, where);

  Labels batch, rows, inner, columns;
  for (const Label label : a.labels)
    (!contains(b.labels, label) ? rows : contains(wanted, label) ? batch : inner).push_back(label);
  for (const Label label : b.labels)
    if (!contains(a.labels, label)) columns.push_back(label);
  Labels labels = batch;
  labels.insert(labels.end(), rows.begin(), rows.end());
  labels.insert(labels.end(), columns.begin(), columns.end());
  if (inner.empty()) return {mul(aligned(a, labels, where), aligned(b, labels, where), where), labels};

  const auto count = [](const Operand& operand, const Labels& of) {
    int64_t product = 1;
    for (const Label label : of)
      product *= operand.size(label);
    return product;
  };
  const auto matrices = [&](const Operand& operand, const Labels& before, const Labels& after) {
    Labels order = batch;
    order.insert(order.end(), before.begin(), before.end());
    order.insert(order.end(), after.begin(), after.end());
    return in_order(operand, order, where)
        .reshape({count(operand, batch), count(operand, before), count(operand, after)}, where);
  };
  Shape sizes;
  for (const Label label : labels)
    sizes.push_back(contains(a.labels, label) ? a.size(label) : b.size(label));
  return {bmm(matrices(a, rows, inner), matrices(b, inner, columns), where).reshape(sizes, where), labels};
}

std::vector<Operand> labelled(Equation& equation, const std::vector<Tensor>& tensors, SourceLocation where) {
  std::vector<Operand> operands;
  int64_t widest = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Labels& labels = equation.inputs[i];
    const bool has_ellipsis = contains(labels, kEllipsis);
    const int64_t under_it = tensors[i].dim() - static_cast<int64_t>(labels.size()) + (has_ellipsis ? 1 : 0);
    if (has_ellipsis ? under_it < 0 : under_it != 0) {
      throw ShapeError(where,
                       "einsum: the number of subscripts in the equation ({}) does not match the number of dimensions "
                       "({}) for operand {}{} in \"{}\"",
                       labels.size() - (has_ellipsis ? 1 : 0), tensors[i].dim(), i,
                       has_ellipsis ? "" : " and no ellipsis was given", equation.text);
    }
    if (has_ellipsis) widest = std::max(widest, under_it);
    operands.push_back(with_diagonals({tensors[i], spread_ellipsis(labels, under_it)}, i, where));
  }
  equation.output = spread_ellipsis(equation.output, widest);
  return operands;
}

void check_sizes(const std::vector<Operand>& operands, SourceLocation where) {
  for (size_t i = 0; i < operands.size(); ++i) {
    for (const Label label : operands[i].labels) {
      for (size_t before = 0; before < i; ++before) {
        const int64_t size = operands[i].size(label);
        const int64_t seen = operands[before].size(label);
        if (size == seen || size == 1 || seen == 1) continue;
        throw ShapeError(where,
                         "einsum: subscript {} has size {} for operand {} which does not broadcast with the size {} of "
                         "operand {}",
                         quoted(label), size, i, seen, before);
      }
    }
  }
}

// The output labels of the equation, or the implicit ones if it has no output.
Labels output_labels(const Equation& equation, const std::vector<Operand>& operands, SourceLocation where) {
  if (!equation.has_output) {
    Labels all;
    for (const Labels& labels : equation.inputs)
      all.insert(all.end(), labels.begin(), labels.end());
    Labels under_ellipsis, letters;
    for (const Operand& operand : operands) {
      for (const Label label : operand.labels) {
        Labels& group = label >= kEllipsis ? under_ellipsis : letters;
        const bool is_once = label >= kEllipsis || std::count(all.begin(), all.end(), label) == 1;
        if (is_once && !contains(group, label)) group.push_back(label);
      }
    }
    std::sort(under_ellipsis.rbegin(), under_ellipsis.rend());
    std::sort(letters.begin(), letters.end());
    under_ellipsis.insert(under_ellipsis.end(), letters.begin(), letters.end());
    return under_ellipsis;
  }
  for (const Label label : equation.output) {
    if (std::count(equation.output.begin(), equation.output.end(), label) > 1)
      throw ValueError(where, "einsum: output subscript {} appears more than once in \"{}\"", quoted(label),
                       equation.text);
    if (std::none_of(operands.begin(), operands.end(),
                     [&](const Operand& operand) { return contains(operand.labels, label); }))
      throw ValueError(where, "einsum: output subscript {} does not appear for any operand in \"{}\"", quoted(label),
                       equation.text);
  }
  return equation.output;
}

}  // namespace

Tensor einsum(const std::string& equation_text, const std::vector<Tensor>& tensors, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_list<"einsum">(where, tensors))
      return einsum(equation_text, in.tensors(), where);
  }
  Equation equation = parse_equation(equation_text, tensors.size(), where);
  const std::vector<Operand> operands = labelled(equation, tensors, where);
  check_sizes(operands, where);
  const Labels output = output_labels(equation, operands, where);
  Operand result = operands.front();
  for (size_t i = 1; i < operands.size(); ++i) {
    Labels wanted = output;
    for (size_t later = i + 1; later < operands.size(); ++later)
      wanted.insert(wanted.end(), operands[later].labels.begin(), operands[later].labels.end());
    result = multiply(result, operands[i], wanted, where);
  }
  return in_order(without_unused(result, output, nullptr, where), output, where);
}

}  // namespace brigade
