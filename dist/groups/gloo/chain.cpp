// Passes pieces of partial sums forward and results back, in an order without circular waits.
#include <brigade/dist/groups/gloo/collectives.h>

#include <brigade/core/factory.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace brigade::dist {
namespace {

constexpr size_t kChainPieceBytes = 256 << 10;

class ChainRun {
 public:
  ChainRun(const Messages& messages, const Chain& chain, const Tensor& tensor)
      : messages_(messages),
        chain_(chain),
        rank_(messages.context.rank),
        data_(static_cast<char*>(tensor.raw_data())),
        itemsize_(tensor.itemsize()),
        count_(tensor.numel()),
        per_piece_(static_cast<int64_t>(kChainPieceBytes / itemsize_)),
        pieces_((count_ + per_piece_ - 1) / per_piece_) {
    // Results travel back along the hops and reach each rank once.
    for (auto hop = chain.hops.rbegin(); hop != chain.hops.rend(); ++hop) {
      if (std::find(way_back_.begin(), way_back_.end(), *hop) == way_back_.end()) way_back_.push_back(*hop);
    }
    place_ = std::find(way_back_.begin(), way_back_.end(), rank_) - way_back_.begin();
    for (size_t hop = 0; hop < chain.hops.size(); ++hop) {
      if (chain.hops[hop] == rank_) hops_.push_back({hop, {}, {}});
    }
  }

  void run() {
    receive();
    for (const Event& event : events()) {
      if (event.hop) {
        add(*event.hop, event.piece);
      } else {
        pass_back(event.piece);
      }
    }
    for (const auto& [buffer, to] : sent_)
      messages_.wait_sent(*buffer, to);
  }

 private:
  // A hop of this rank.
  struct Hop {
    size_t index;
    Tensor sums;
    std::vector<Messages::Buffer> pieces;  // of sums
  };
  // An action of this rank for a piece: add at a hop, or pass a result back (no hop).
  struct Event {
    int64_t moment;
    int64_t piece;
    Hop* hop;
  };

  int64_t begin(int64_t piece) const noexcept { return piece * per_piece_; }
  int64_t end(int64_t piece) const noexcept { return std::min(count_, (piece + 1) * per_piece_); }
  size_t bytes(int64_t elements) const noexcept { return static_cast<size_t>(elements) * itemsize_; }
  size_t length(int64_t piece) const noexcept { return bytes(end(piece) - begin(piece)); }
  char* at(const Hop& hop, int64_t piece) const {
    return static_cast<char*>(hop.sums.raw_data()) + bytes(begin(piece));
  }
  size_t last_hop() const noexcept { return chain_.hops.size() - 1; }
  // The messages of each hop have separate slot numbers.
  uint64_t sum_slot(size_t hop, int64_t piece) const noexcept {
    return messages_.slot(Messages::kPartialSum, static_cast<uint32_t>(static_cast<int64_t>(hop) * pieces_ + piece));
  }
  // Only for ranks other than the first on the way back.
  int sender_of_results() const noexcept { return way_back_[static_cast<size_t>(place_ - 1)]; }
  uint64_t result_slot(int64_t piece) const noexcept {
    return messages_.slot(Messages::kResult, static_cast<uint32_t>(piece));
  }

  // Each event waits only for an event of an earlier moment: hop h adds piece p at moment p + h, after hop h - 1 has
  // added it; results start after the last hop and advance one place per moment. Ranks process events in the order of
  // moments, so there are no circular waits.
  std::vector<Event> events() {
    std::vector<Event> events;
    for (int64_t piece = 0; piece < pieces_; ++piece) {
      for (Hop& hop : hops_)
        events.push_back({piece + static_cast<int64_t>(hop.index), piece, &hop});
      if (place_ > 0) events.push_back({piece + static_cast<int64_t>(last_hop()) + place_, piece, nullptr});
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.moment < b.moment; });
    return events;
  }

  // Posts all receives. A result overwrites elements that this rank has already added.
  void receive() {
    for (int64_t piece = 0; piece < pieces_; ++piece)
      results_.push_back(messages_.buffer(data_ + bytes(begin(piece)), length(piece)));
    for (Hop& hop : hops_) {
      if (hop.index == last_hop() && hop.index == 0) continue;
      hop.sums = empty({static_cast<int64_t>(bytes(count_))}, kUInt8);
      for (int64_t piece = 0; piece < pieces_; ++piece) {
        hop.pieces.push_back(messages_.buffer(at(hop, piece), length(piece)));
        if (hop.index > 0) hop.pieces.back()->recv(chain_.hops[hop.index - 1], sum_slot(hop.index, piece));
      }
    }
    if (place_ == 0) return;
    for (int64_t piece = 0; piece < pieces_; ++piece)
      results_[static_cast<size_t>(piece)]->recv(sender_of_results(), result_slot(piece));
  }

  void add(Hop& hop, int64_t piece) {
    const auto index = static_cast<size_t>(piece);
    const bool last = hop.index == last_hop();
    char* sums = last && hop.index == 0 ? nullptr : at(hop, piece);
    if (hop.index > 0) messages_.wait_received(*hop.pieces[index], chain_.hops[hop.index - 1]);
    char* result = last ? data_ + bytes(begin(piece)) : sums;
    chain_.add(hop.index, hop.index > 0 ? sums : nullptr, result, begin(piece), end(piece));
    if (last) {
      send_result(piece);
    } else {
      send(*hop.pieces[index], chain_.hops[hop.index + 1], sum_slot(hop.index + 1, piece));
    }
  }

  void pass_back(int64_t piece) {
    messages_.wait_received(*results_[static_cast<size_t>(piece)], sender_of_results());
    send_result(piece);
  }

  // Sends a result to the next rank on the way back.
  void send_result(int64_t piece) {
    const auto next = static_cast<size_t>(place_ + 1);
    if (next < way_back_.size()) send(*results_[static_cast<size_t>(piece)], way_back_[next], result_slot(piece));
  }

  void send(gloo::transport::UnboundBuffer& buffer, int to, uint64_t slot) {
    buffer.send(to, slot);
    sent_.emplace_back(&buffer, to);
  }

  const Messages& messages_;
  const Chain& chain_;
  const int rank_;
  char* const data_;
  const size_t itemsize_;
  const int64_t count_;
  const int64_t per_piece_;
  const int64_t pieces_;
  std::vector<int> way_back_;
  int64_t place_ = 0;  // of this rank in way_back_
  std::vector<Hop> hops_;
  std::vector<Messages::Buffer> results_;                              // pieces of the tensor
  std::vector<std::pair<gloo::transport::UnboundBuffer*, int>> sent_;  // and the rank that receives it
};

}  // namespace

void run_chain(const Messages& messages, const Chain& chain, const Tensor& tensor) {
  ChainRun(messages, chain, tensor).run();
}

}  // namespace brigade::dist
