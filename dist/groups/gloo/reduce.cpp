// Receives the parts of all ranks, piece by piece, and reduces each piece when it is complete.
#include <brigade/dist/groups/gloo/collectives.h>

#include <brigade/core/factory.h>
#include <brigade/dist/groups/arithmetic.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace brigade::dist {
namespace {

// Up to this size a second step costs more than sending the whole tensor to all ranks.
constexpr size_t kSentWhole = 32 << 10;

// Elements [begin, end).
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const noexcept { return end - begin; }
};

// The pieces of rank `part`'s share of `count` elements; a share has `per_rank` elements.
std::vector<Range> pieces_of(int part, int64_t per_rank, int64_t count, size_t itemsize) {
  const auto piece = static_cast<int64_t>(kPieceBytes / itemsize);
  std::vector<Range> pieces;
  const int64_t end = std::min(count, (part + 1) * per_rank);
  for (int64_t begin = part * per_rank; begin < end; begin += piece)
    pieces.push_back({begin, std::min(end, begin + piece)});
  return pieces;
}

// Exchanges a tensor whose elements are divided among the ranks.
class Exchange {
 public:
  Exchange(const Messages& messages, const Tensor& tensor, int64_t per_rank, ReduceOp op)
      : messages_(messages),
        rank_(messages.context.rank),
        size_(messages.context.size),
        data_(static_cast<char*>(tensor.raw_data())),
        dtype_(tensor.dtype()),
        itemsize_(tensor.itemsize()),
        op_(op) {
    for (int r = 0; r < size_; ++r) {
      pieces_.push_back(pieces_of(r, per_rank, tensor.numel(), itemsize_));
      whole_.push_back(messages.buffer(data_, tensor.nbytes()));
    }
    sent_.resize(pieces_.size());
  }

  // Step 1.
  void exchange_parts() {
    receive_parts();
    send_parts();
  }

  // Step 2. The result of each piece of this rank goes to target(piece), then done(index, piece) is
  // called.
  template <class Target, class Done>
  void reduce(Target target, Done done) {
    const std::vector<Range>& own = pieces_of_rank(rank_);
    for (size_t i = 0; i < own.size(); ++i) {
      std::vector<void*> inputs;
      for (int r = 0; r < size_; ++r) {
        const Messages::Buffer& part = arrived_[i][static_cast<size_t>(r)];
        if (part) messages_.wait_received(*part, r);
        inputs.push_back(part ? part->ptr : data_ + bytes(own[i].begin));
      }
      void* outputs[] = {target(own[i])};
      reduce_elements(inputs, outputs, dtype_, op_, 0, own[i].count());
      done(static_cast<uint32_t>(i), own[i]);
    }
  }

  // Step 3. A result may arrive before all parts are sent: it overwrites only elements that its sender has already
  // received.
  void receive_results() {
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const std::vector<Range>& pieces = pieces_of_rank(r);
      for (size_t i = 0; i < pieces.size(); ++i)
        with(r).recv(r, messages_.slot(Messages::kSum, static_cast<uint32_t>(i)), bytes(pieces[i].begin),
                     bytes(pieces[i].count()));
    }
  }
  void send_result(uint32_t index, const Range& piece) {
    for_each_other([&](int r) { send(r, messages_.slot(Messages::kSum, index), piece); });
  }
  void wait_for_results() {
    for_each_other([&](int r) { messages_.wait_received(with(r), r, pieces_of_rank(r).size()); });
  }

  void wait_sent() {
    for_each_other([&](int r) { messages_.wait_sent(with(r), r, std::exchange(sent_[static_cast<size_t>(r)], 0)); });
  }

  char* at(const Range& piece) const { return data_ + bytes(piece.begin); }

 private:
  const std::vector<Range>& pieces_of_rank(int r) const { return pieces_[static_cast<size_t>(r)]; }
  size_t bytes(int64_t elements) const noexcept { return static_cast<size_t>(elements) * itemsize_; }
  size_t others() const noexcept { return static_cast<size_t>(size_ - 1); }
  gloo::transport::UnboundBuffer& with(int r) const { return *whole_[static_cast<size_t>(r)]; }

  // Each rank starts with its successor, so that they do not all send to the same rank.
  template <class F>
  void for_each_other(F f) const {
    for (int step = 1; step < size_; ++step)
      f((rank_ + step) % size_);
  }

  void send(int to, uint64_t slot, const Range& piece) {
    with(to).send(to, slot, bytes(piece.begin), bytes(piece.count()));
    ++sent_[static_cast<size_t>(to)];
  }

  // One buffer for each piece of each other rank.
  void receive_parts() {
    const std::vector<Range>& own = pieces_of_rank(rank_);
    if (own.empty()) return;
    const int64_t count = own.back().end - own.front().begin;
    room_ = empty({static_cast<int64_t>(bytes(count) * others())}, kUInt8);
    char* room = static_cast<char*>(room_.raw_data());
    for (size_t i = 0; i < own.size(); ++i) {
      const size_t length = bytes(own[i].count());
      arrived_.emplace_back(static_cast<size_t>(size_));
      for (int r = 0; r < size_; ++r) {
        if (r == rank_) continue;
        Messages::Buffer& part = arrived_.back()[static_cast<size_t>(r)];
        part = messages_.buffer(room, length);
        part->recv(r, messages_.slot(Messages::kPart, static_cast<uint32_t>(i)));
        room += length;
      }
    }
  }

  void send_parts() {
    size_t most = 0;
    for (const std::vector<Range>& pieces : pieces_)
      most = std::max(most, pieces.size());
    for (size_t i = 0; i < most; ++i) {
      for_each_other([&](int r) {
        if (i < pieces_of_rank(r).size())
          send(r, messages_.slot(Messages::kPart, static_cast<uint32_t>(i)), pieces_of_rank(r)[i]);
      });
    }
  }

  const Messages& messages_;
  const int rank_;
  const int size_;
  char* const data_;
  const DType dtype_;
  const size_t itemsize_;
  const ReduceOp op_;
  std::vector<std::vector<Range>> pieces_;              // of each rank
  Tensor room_;                                         // receive buffer for the other ranks' parts
  std::vector<Messages::Buffer> whole_;                 // the tensor, for messages from and to each rank
  std::vector<std::vector<Messages::Buffer>> arrived_;  // indexed by piece of this rank, then by source rank
  std::vector<size_t> sent_;                            // number of messages sent to each rank
};

// Every rank receives every tensor and reduces all of it.
void reduce_whole(const Messages& messages, const Tensor& tensor, ReduceOp op) {
  const int rank = messages.context.rank;
  const int size = messages.context.size;
  const size_t bytes = tensor.nbytes();
  std::vector<char> room(bytes * static_cast<size_t>(size));
  std::vector<Messages::Buffer> from(static_cast<size_t>(size));
  std::vector<Messages::Buffer> to(static_cast<size_t>(size));
  std::vector<void*> inputs;
  for (int r = 0; r < size; ++r) {
    const auto at = static_cast<size_t>(r);
    inputs.push_back(r == rank ? tensor.raw_data() : room.data() + at * bytes);
    if (r == rank) continue;
    from[at] = messages.buffer(inputs.back(), bytes);
    from[at]->recv(r, messages.slot(Messages::kPart));
  }
  for (int step = 1; step < size; ++step) {
    const int r = (rank + step) % size;
    to[static_cast<size_t>(r)] = messages.buffer(tensor.raw_data(), bytes);
    to[static_cast<size_t>(r)]->send(r, messages.slot(Messages::kPart));
  }
  for (int r = 0; r < size; ++r) {
    if (r != rank) messages.wait_received(*from[static_cast<size_t>(r)], r);
  }
  for (int r = 0; r < size; ++r) {
    if (r != rank) messages.wait_sent(*to[static_cast<size_t>(r)], r);
  }
  void* outputs[] = {tensor.raw_data()};
  reduce_elements(inputs, outputs, tensor.dtype(), op, 0, tensor.numel());
}

}  // namespace

void reduce_everywhere(const Messages& messages, const Tensor& tensor, ReduceOp op) {
  const int size = messages.context.size;
  if (size == 1) return;
  if (tensor.nbytes() <= kSentWhole) {
    reduce_whole(messages, tensor, op);
    return;
  }
  // Parts begin at cache-line boundaries.
  const int64_t line = 64 / static_cast<int64_t>(tensor.itemsize());
  const int64_t lines = (tensor.numel() + line - 1) / line;
  Exchange exchange(messages, tensor, (lines + size - 1) / size * line, op);
  exchange.receive_results();
  exchange.exchange_parts();
  exchange.reduce([&](const Range& piece) { return exchange.at(piece); },
                  [&](uint32_t index, const Range& piece) { exchange.send_result(index, piece); });
  exchange.wait_for_results();
  exchange.wait_sent();
}

void reduce_own_part(const Messages& messages, const Tensor& output, const Tensor& input, ReduceOp op) {
  const char* from = static_cast<const char*>(input.raw_data());
  char* to = static_cast<char*>(output.raw_data());
  const char* own = from + static_cast<size_t>(messages.context.rank) * output.nbytes();
  if (messages.context.size == 1) {
    std::memmove(to, from, output.nbytes());
    return;
  }
  Exchange exchange(messages, input, output.numel(), op);
  exchange.exchange_parts();
  // An output that overlaps parts of other ranks may be written only once they have been sent.
  const bool overlaps = to < from + input.nbytes() && from < to + output.nbytes();
  if (overlaps && to != own) exchange.wait_sent();
  exchange.reduce([&](const Range& piece) { return to + (exchange.at(piece) - own); }, [](uint32_t, const Range&) {});
  exchange.wait_sent();
}

}  // namespace brigade::dist
