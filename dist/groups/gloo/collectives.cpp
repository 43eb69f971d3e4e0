// Communication patterns: a binomial tree, all-to-all, and rings of growing strides.
#include <brigade/dist/groups/gloo/collectives.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace brigade::dist {
namespace {

// The place of a rank in a binomial tree.
struct TreePlace {
  int parent = -1;            // -1: this is the root
  std::vector<int> children;  // ordered by size of their subtrees, largest first
};

TreePlace place_in_tree(int rank, int root, int size) {
  const int from_root = (rank - root + size) % size;
  const auto at = [&](int place) { return (place + root) % size; };
  // The subtree of a rank contains the ranks that differ from it only in the bits below its lowest set bit.
  const int lowest = from_root & -from_root;
  TreePlace place;
  if (from_root != 0) place.parent = at(from_root - lowest);
  for (int bit = 1; from_root == 0 ? bit < size : bit < lowest; bit *= 2) {
    if (from_root + bit < size) place.children.insert(place.children.begin(), at(from_root + bit));
  }
  return place;
}

}  // namespace

void tree_broadcast(const Messages& messages, const Tensor& tensor, int root) {
  const TreePlace place = place_in_tree(messages.context.rank, root, messages.context.size);
  char* const data = static_cast<char*>(tensor.raw_data());
  std::vector<Messages::Buffer> pieces;
  const auto slot = [&](size_t piece) { return messages.slot(Messages::kBroadcast, static_cast<uint32_t>(piece)); };
  for (size_t begin = 0; begin < tensor.nbytes(); begin += kPieceBytes) {
    pieces.push_back(messages.buffer(data + begin, std::min(kPieceBytes, tensor.nbytes() - begin)));
    if (place.parent >= 0) pieces.back()->recv(place.parent, slot(pieces.size() - 1));
  }
  // One buffer per child, because Gloo counts the messages sent from a buffer, not per receiver.
  std::vector<std::vector<Messages::Buffer>> sent(place.children.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (place.parent >= 0) messages.wait_received(*pieces[i], place.parent);
    for (size_t child = 0; child < sent.size(); ++child) {
      sent[child].push_back(messages.buffer(pieces[i]->ptr, pieces[i]->size));
      sent[child].back()->send(place.children[child], slot(i));
    }
  }
  for (size_t child = 0; child < sent.size(); ++child) {
    for (const Messages::Buffer& piece : sent[child])
      messages.wait_sent(*piece, place.children[child]);
  }
}

void direct_all_gather(const Messages& messages, const Tensor& output, const Tensor& input) {
  const int rank = messages.context.rank;
  const int size = messages.context.size;
  const uint64_t slot = messages.slot(Messages::kGather);
  char* const to = static_cast<char*>(output.raw_data());
  const auto place_of = [&](int r) { return to + static_cast<size_t>(r) * input.nbytes(); };
  if (place_of(rank) != input.raw_data()) std::memmove(place_of(rank), input.raw_data(), input.nbytes());
  std::vector<Messages::Buffer> received(static_cast<size_t>(size));
  std::vector<Messages::Buffer> sent(static_cast<size_t>(size));
  const auto peers_from_next = [&](auto use) {
    for (int step = 1; step < size; ++step)
      use((rank + step) % size);
  };
  peers_from_next([&](int r) {
    received[static_cast<size_t>(r)] = messages.buffer(place_of(r), input.nbytes());
    received[static_cast<size_t>(r)]->recv(r, slot);
  });
  peers_from_next([&](int r) {
    sent[static_cast<size_t>(r)] = messages.buffer(place_of(rank), input.nbytes());
    sent[static_cast<size_t>(r)]->send(r, slot);
  });
  peers_from_next([&](int r) { messages.wait_received(*received[static_cast<size_t>(r)], r); });
  peers_from_next([&](int r) { messages.wait_sent(*sent[static_cast<size_t>(r)], r); });
}

void dissemination_barrier(const Messages& messages) {
  const int rank = messages.context.rank;
  const int size = messages.context.size;
  uint32_t step = 0;
  for (int distance = 1; distance < size; distance *= 2, ++step) {
    const int to = (rank + distance) % size;
    const int from = (rank - distance + size) % size;
    const Messages::Buffer sent = messages.buffer(nullptr, 0);
    const Messages::Buffer received = messages.buffer(nullptr, 0);
    received->recv(from, messages.slot(Messages::kMeet, step));
    sent->send(to, messages.slot(Messages::kMeet, step));
    messages.wait_received(*received, from);
    messages.wait_sent(*sent, to);
  }
}

}  // namespace brigade::dist
