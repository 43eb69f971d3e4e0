// An autograd engine for single numbers, without Brigade: it shows what the graph holds, and how backward walks it.
//
// Each operation computes a number and records its inputs, and the derivative with respect to each input (the slope).
// Backward visits every result before its inputs, and adds the result's gradient times the slope to each input: the
// chain rule. A number that was used twice gets the sum. Brigade's engine (autograd/engine.h) does the same with
// tensors. This engine searches for the order; Brigade numbers the operations as they run.
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>
#include <vector>

// One number of the graph.
struct Node {
  struct Edge {
    std::shared_ptr<Node> input;
    double slope;  // how fast this number grows when the input does
  };
  double data = 0, grad = 0;
  std::vector<Edge> edges;  // none: a leaf, such as a weight
};

// The handle that programs use: copies refer to the same number.
class Value {
 public:
  explicit Value(double data, std::vector<Node::Edge> edges = {}) : node_(std::make_shared<Node>()) {
    node_->data = data;
    node_->edges = std::move(edges);
  }
  double data() const { return node_->data; }
  double grad() const { return node_->grad; }
  void set_data(double data) const { node_->data = data; }
  void zero_grad() const { node_->grad = 0; }
  Node::Edge edge(double slope) const { return {node_, slope}; }
  void backward() const;

 private:
  std::shared_ptr<Node> node_;
};

// Four operations are enough for a neuron and its loss: each computes its result and records the slopes.
Value operator+(const Value& a, const Value& b) { return Value(a.data() + b.data(), {a.edge(1), b.edge(1)}); }
Value operator-(const Value& a, const Value& b) { return Value(a.data() - b.data(), {a.edge(1), b.edge(-1)}); }
Value operator*(const Value& a, const Value& b) {
  return Value(a.data() * b.data(), {a.edge(b.data()), b.edge(a.data())});
}
Value tanh(const Value& a) {
  const double t = std::tanh(a.data());
  return Value(t, {a.edge(1 - t * t)});
}

// Appends `node` after all of its inputs (topological order).
void sort(Node* node, std::set<Node*>& seen, std::vector<Node*>& order) {
  if (!seen.insert(node).second) return;
  for (const Node::Edge& edge : node->edges)
    sort(edge.input.get(), seen, order);
  order.push_back(node);
}

void Value::backward() const {
  std::set<Node*> seen;
  std::vector<Node*> order;
  sort(node_.get(), seen, order);
  node_->grad = 1;
  for (auto node = order.rbegin(); node != order.rend(); ++node)
    for (const Node::Edge& edge : (*node)->edges)
      edge.input->grad += (*node)->grad * edge.slope;
}

Value curve(const Value& x) { return tanh(x) * x - x; }  // x is used three times

// The squared error of y = tanh(w x + b) at five points of the curve with w = 1.5 and b = -0.5.
Value loss(const Value& w, const Value& b) {
  Value sum(0);
  for (const double x : {-2.0, -1.0, 0.0, 1.0, 2.0}) {
    const Value error = tanh(w * Value(x) + b) - Value(std::tanh(1.5 * x - 0.5));
    sum = sum + error * error;
  }
  return sum;
}

int main() {
  const Value x(0.7);
  curve(x).backward();
  const double difference = (curve(Value(0.70001)).data() - curve(Value(0.69999)).data()) / 0.00002;
  std::printf("slope of the curve: %.8f by backward, %.8f by a difference\n", x.grad(), difference);
  if (std::abs(x.grad() - difference) > 1e-8) return 1;

  const Value w(0.1), b(0);
  for (int i = 0; i < 200; ++i) {
    w.zero_grad();
    b.zero_grad();
    loss(w, b).backward();
    w.set_data(w.data() - 0.2 * w.grad());
    b.set_data(b.data() - 0.2 * b.grad());
  }
  std::printf("after 200 steps: w = %.4f, b = %.4f, loss = %.1e\n", w.data(), b.data(), loss(w, b).data());
  return std::abs(w.data() - 1.5) < 1e-3 && std::abs(b.data() + 0.5) < 1e-3 ? 0 : 1;
}
