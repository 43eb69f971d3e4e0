// Writes nodes, leaves and cuts in the DOT language, and calls Graphviz for an SVG.
#include <brigade/autograd/graph_picture.h>

#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace brigade::autograd {
namespace {

// "node7", or "node7_2" if a thread other than the first recorded it.
std::string node_id(uint64_t sequence) {
  const uint64_t thread = sequence % detail::kThreadsInSequence;
  return "node" + std::to_string(sequence / detail::kThreadsInSequence) +
         (thread == 0 ? "" : "_" + std::to_string(thread));
}

std::string dot_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string look(const OutputInfo& info) { return std::string(name(info.dtype)) + " " + to_string(info.sizes); }

class Picture {
 public:
  explicit Picture(const PictureOptions& options) : options_(options) {
    for (const auto& [name, tensor] : options.names)
      names_.emplace(tensor.impl(), name);
  }

  void add_root(const Tensor& root) {
    const std::string id = "root" + std::to_string(roots_++);
    vertex(id, "root\n" + describe(root), "shape=box, style=bold");
    if (!root.requires_grad()) {
      cut_roots_.emplace(root.id(), id);
      return;
    }
    const Edge edge = gradient_edge(root);
    connect(edge, id, describe(root));
    if (edge.node) add_nodes(edge.node.get());
  }

  std::string text() {
    add_cuts();
    return "digraph autograd {\n  rankdir=TB;\n  node [fontname=\"monospace\", fontsize=10];\n  edge "
           "[fontname=\"monospace\", fontsize=9];\n" +
           body_ + "}\n";
  }

 private:
  void vertex(const std::string& id, const std::string& label, const std::string& style) {
    body_ += "  " + id + " [label=" + dot_string(label) + ", " + style + "];\n";
  }
  void arrow(const std::string& from, const std::string& to, const std::string& label, const std::string& style = "") {
    body_ += "  " + from + " -> " + to + " [label=" + dot_string(label) + (style.empty() ? "" : ", " + style) + "];\n";
  }

  std::string leaf_id(TensorImpl* leaf) {
    const std::string id = "leaf" + std::to_string(leaf->id);
    if (!seen_leaves_.insert(leaf).second) return id;
    std::string label;
    if (const auto known = names_.find(leaf); known != names_.end()) {
      label = known->second;
    } else if (const auto* leaf_meta = static_cast<AutogradMeta*>(leaf->autograd.get());
               leaf_meta && !leaf_meta->registered_as.empty()) {
      label = leaf_meta->registered_as;
    } else {
      label = "leaf";
    }
    vertex(id, label + "\n" + name(leaf->dtype) + " " + to_string(leaf->sizes),
           "shape=box, style=filled, fillcolor=lightblue");
    return id;
  }

  void connect(const Edge& edge, const std::string& to, const std::string& shape) {
    if (edge.node) {
      arrow(node_id(edge.node->sequence), to, look(edge.node->outputs[edge.output]));
    } else if (edge.leaf) {
      arrow(leaf_id(edge.leaf.get()), to, shape);
    }
  }

  void add_nodes(Node* first) {
    std::vector<Node*> open{first};
    while (!open.empty()) {
      Node* const node = open.back();
      open.pop_back();
      if (!nodes_.emplace(node->sequence, node).second) continue;
      const std::string id = node_id(node->sequence);
      std::string label = node->op;
      if (options_.locations && node->where.line() != 0) label += "\n" + to_string(node->where);
      vertex(id, label, "shape=ellipse");
      for (const Edge& edge : node->edges) {
        if (edge.leaf) connect(edge, id, std::string(name(edge.leaf->dtype)) + " " + to_string(edge.leaf->sizes));
        if (!edge.node) continue;
        connect(edge, id, "");
        open.push_back(edge.node.get());
      }
    }
  }

  // Draws the operations on the tape that fed the picture without history.
  void add_cuts() {
    const Tape* const tape = Tape::current();
    if (!tape) return;
    std::unordered_map<uint64_t, const Tape::Record*> made_by;
    std::set<const Tape::Record*> drawn;
    // Index the records by output, then draw the cuts in front of the picture's operations and roots.
    for (const Tape::Record& record : tape->records()) {
      for (const uint64_t id : tape->outputs(record))
        made_by[id] = &record;
    }
    const auto draw_cut = [&](uint64_t id, const std::string& to) {
      const auto found = made_by.find(id);
      if (found == made_by.end() || found->second->cut == Cut::None) return;
      const Tape::Record& record = *found->second;
      const std::string cut = "cut" + std::to_string(&record - tape->records().data());
      if (drawn.insert(&record).second) {
        constexpr const char* kWhy[] = {"", "detach()", "no_grad", "no derivative", "read as a number"};
        std::string label = std::string("cut: ") + kWhy[static_cast<int>(record.cut)];
        if (std::string(record.op) != "detach") label += "\n" + std::string(record.op);
        const SourceLocation where = record.cut == Cut::NoGrad ? record.cut_at : record.where;
        if (options_.locations && where.line() != 0) label += "\n" + to_string(where);
        vertex(cut, label, "shape=octagon, color=red, fontcolor=red");
        for (const uint64_t input : tape->inputs(record))
          draw_source(made_by, input, cut);
      }
      arrow(cut, to, "", "style=dashed, color=red");
    };
    for (const Tape::Record& record : tape->records()) {
      if (record.sequence == 0 || !nodes_.contains(record.sequence)) continue;
      for (const uint64_t id : tape->inputs(record))
        draw_cut(id, node_id(record.sequence));
    }
    for (const auto& [tensor, root] : cut_roots_)
      draw_cut(tensor, root);
  }

  // Draws the source of a cut: the operation that made the value, or the named leaf.
  void draw_source(const std::unordered_map<uint64_t, const Tape::Record*>& made_by, uint64_t id,
                   const std::string& cut) {
    if (const auto found = made_by.find(id); found != made_by.end()) {
      const Tape::Record& record = *found->second;
      if (record.sequence == 0) return;
      const std::string source = node_id(record.sequence);
      if (!nodes_.contains(record.sequence) && behind_.insert(record.sequence).second) {
        std::string label = record.op;
        if (options_.locations && record.where.line() != 0) label += "\n" + to_string(record.where);
        vertex(source, label, "shape=ellipse, style=dashed, color=gray");
      }
      arrow(source, cut, "", "style=dashed, color=red");
      return;
    }
    for (const auto& [name, tensor] : options_.names) {
      if (tensor.id() == id) arrow(leaf_id(tensor.impl()), cut, "", "style=dashed, color=red");
    }
  }

  const PictureOptions& options_;
  std::unordered_map<const TensorImpl*, std::string> names_;
  std::set<const TensorImpl*> seen_leaves_;
  std::map<uint64_t, const Node*> nodes_;
  std::set<uint64_t> behind_;
  std::map<uint64_t, std::string> cut_roots_;
  std::string body_;
  int roots_ = 0;
};

}  // namespace

std::string to_dot(TensorList roots, const PictureOptions& options) {
  Picture picture(options);
  for (const Tensor& root : roots) {
    if (!root.defined()) throw AutogradError("to_dot: a root is undefined");
    picture.add_root(root);
  }
  return picture.text();
}

void write_svg(const std::string& dot, const std::string& path) {
  std::string source = "/tmp/brigade-XXXXXX";
  const int file = mkstemp(source.data());
  if (file < 0) throw ValueError("write_svg: no temporary file: {}", std::strerror(errno));
  size_t written = 0;
  while (written < dot.size()) {
    const ssize_t now = ::write(file, dot.data() + written, dot.size() - written);
    if (now <= 0) break;
    written += static_cast<size_t>(now);
  }
  ::close(file);
  const char* arguments[] = {"dot", "-Tsvg", "-o", path.c_str(), source.c_str(), nullptr};
  pid_t child = 0;
  const int failed = written < dot.size()
                         ? EIO
                         : posix_spawnp(&child, "dot", nullptr, nullptr, const_cast<char**>(arguments), environ);
  int status = 0;
  if (failed == 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  ::unlink(source.c_str());
  if (failed == ENOENT || (failed == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    throw ValueError("write_svg: graphviz' program `dot` is not there; install graphviz");
  }
  if (failed != 0) throw ValueError("write_svg: {}", std::strerror(failed));
  if (status != 0) throw ValueError("write_svg: dot failed to write {} (status {})", path, status);
}

}  // namespace brigade::autograd
