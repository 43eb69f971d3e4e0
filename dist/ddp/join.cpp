// Implements the word that the ranks exchange, the part of a rank without data, and nested joins.
#include <brigade/dist/ddp/join.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

// What a rank announces, in 64 bits.
struct JoinWord {
  static constexpr int kNobody = 0;   // no data left
  static constexpr int kLayer = 255;  // a layer; other speakers are joinables, counted from 1

  int joins = 0;     // open joins of the rank, nested
  int settings = 0;  // of the innermost join: must be alike
  int speaker = kNobody;
  int64_t what = 0;

  int64_t encoded() const {
    return static_cast<int64_t>(joins) << 56 | static_cast<int64_t>(settings) << 48 |
           static_cast<int64_t>(speaker) << 40 | what;
  }
  explicit JoinWord(int64_t bits)
      : joins(static_cast<int>(bits >> 56 & 0x7f)),
        settings(static_cast<int>(bits >> 48 & 0xff)),
        speaker(static_cast<int>(bits >> 40 & 0xff)),
        what(bits & ((int64_t{1} << 40) - 1)) {}
  JoinWord(int joins, int settings, int speaker, int64_t what)
      : joins(joins), settings(settings), speaker(speaker), what(what) {}
};

namespace {

// JoinWord::what of a layer: the number of values; this bit means that they are summed.
constexpr int64_t kSummed = int64_t{1} << 39;
// The same topics on ranks with data and on shadows.
Topic of_join(std::string_view purpose) { return {Phase::Join, Name(purpose)}; }
Topic values_of_layer() { return of_join("join: values of a layer"); }
Topic sums_of_layer() { return of_join("join: sums of a layer"); }

int settings_of(size_t joinables, const JoinOptions& options) {
  return static_cast<int>(joinables & 63) << 2 | (options.throw_on_early_termination ? 2 : 0) |
         (options.divide_by_initial_world_size ? 1 : 0);
}

std::string settings_in_words(int settings) {
  return fmt::format("{} joinables, throw_on_early_termination {}, divide_by_initial_world_size {}", settings >> 2,
                     (settings & 2) != 0, (settings & 1) != 0);
}

}  // namespace

// The open, nested joins of a rank over one group.
struct JoinContext {
  struct Member {
    Joinable* joinable;
    std::unique_ptr<JoinHook> hook;
    bool shadowed = false;  // on some rank, since the last join ended
  };
  struct Level {
    const Join* join;
    size_t members;  // in all levels up to this one
    JoinOptions options;
    SourceLocation where;
  };

  ProcessGroup* group;
  std::vector<Member> members;
  std::vector<Level> levels;
  bool shadows = false;          // this rank is in finish()
  bool layers_exchange = false;  // in any forward so far

  // The words of all ranks. Throws if those with data disagree, or on early termination.
  struct Heard {
    JoinWord word;    // of the ranks with data
    int source = -1;  // the highest rank with data
    bool someone_finished = false;
  };
  Heard exchange(int speaker, int64_t what, SourceLocation where);
  void check_alike(const std::vector<JoinWord>& words, SourceLocation where) const;
  void shadow(const Heard& heard, SourceLocation where);
  std::string describe(const JoinWord& word) const;
};

std::string JoinContext::describe(const JoinWord& word) const {
  if (word.speaker == JoinWord::kLayer) {
    return fmt::format("an {} of {} values in a layer", (word.what & kSummed) ? "all_reduce" : "all_gather",
                       word.what & ~kSummed);
  }
  return members[static_cast<size_t>(word.speaker - 1)].hook->describe(word.what);
}

// Every rank holds the same words, so all throw or none does.
void JoinContext::check_alike(const std::vector<JoinWord>& words, SourceLocation where) const {
  for (size_t r = 1; r < words.size(); ++r) {
    if (words[r].joins != words[0].joins) {
      throw DistError(where,
                      "join: rank 0 is inside {} joins, rank {} inside {}. A rank that has finished the outer join "
                      "cannot follow one that others open inside: open one Join over all that join, Join({{a, b}})",
                      words[0].joins, r, words[r].joins);
    }
    if (words[r].settings == words[0].settings) continue;
    throw DistError(where, "join: the ranks' joins differ; rank 0: {}; rank {}: {}",
                    settings_in_words(words[0].settings), r, settings_in_words(words[r].settings));
  }
}

JoinContext::Heard JoinContext::exchange(int speaker, int64_t what, SourceLocation where) {
  const Level& level = levels.back();
  const JoinWord mine(static_cast<int>(levels.size()), settings_of(level.members, level.options), speaker, what);
  const Tensor own = group->allocate(1, kInt64);
  const Tensor all = group->allocate(group->size(), kInt64);
  *own.data_ptr<int64_t>() = mine.encoded();
  group->all_gather(all, own, {.topic = of_join("join: who has data, and what comes next")}, where)->wait();
  std::vector<JoinWord> words;
  for (int r = 0; r < group->size(); ++r)
    words.emplace_back(all.data_ptr<int64_t>()[r]);
  check_alike(words, where);

  Heard heard{mine};
  for (int r = 0; r < group->size(); ++r) {
    const JoinWord& word = words[static_cast<size_t>(r)];
    if (word.speaker == JoinWord::kNobody) {
      heard.someone_finished = true;
    } else {
      heard.word = word;
      heard.source = r;
    }
  }
  if (heard.source < 0) return heard;
  if (level.options.throw_on_early_termination && heard.someone_finished) {
    if (speaker == JoinWord::kNobody) throw DistError(where, "Rank {} exhausted all inputs.", group->rank());
    throw DistError("Detected at least one rank that exhausted inputs. Throwing across all ranks.", where);
  }
  for (size_t r = 0; r < words.size(); ++r) {
    const JoinWord& word = words[r];
    if (word.speaker == JoinWord::kNobody || word.encoded() == heard.word.encoded()) continue;
    throw DistError(where,
                    "join: rank {} begins {}, rank {} {}; ranks with data must do the same things in the same order", r,
                    describe(word), heard.source, describe(heard.word));
  }
  if (heard.someone_finished && heard.word.speaker != JoinWord::kLayer)
    members[static_cast<size_t>(heard.word.speaker - 1)].shadowed = true;
  return heard;
}

// Takes this rank's part in what the others announce.
void JoinContext::shadow(const Heard& heard, SourceLocation where) {
  const JoinWord& word = heard.word;
  if (word.speaker != JoinWord::kLayer) {
    members[static_cast<size_t>(word.speaker - 1)].hook->main_hook_at(
        {.what = word.what, .source = heard.source, .where = where});
    return;
  }
  const int64_t numel = word.what & ~kSummed;
  const Tensor zeros = group->allocate(numel, kFloat64);
  std::fill_n(zeros.data_ptr<double>(), numel, 0.0);
  if (word.what & kSummed) {
    group->all_reduce(zeros, {.op = ReduceOp::Sum, .topic = sums_of_layer()}, where)->wait();
  } else {
    const Tensor all = group->allocate(numel * group->size(), kFloat64);
    group->all_gather(all, zeros, {.topic = values_of_layer()}, where)->wait();
  }
}

namespace {

// The open joins of this thread.
thread_local std::weak_ptr<JoinContext> open_joins;
// The join that the running forward belongs to.
thread_local std::shared_ptr<JoinContext> joined_forward;

}  // namespace

std::string JoinHook::describe(int64_t) const { return "an iteration of a joinable"; }

const JoinOptions* Joinable::join_options() const noexcept { return join_ ? &join_->options_ : nullptr; }

SourceLocation Joinable::join_where() const noexcept { return join_ ? join_->where_ : SourceLocation(); }

Join::Join(Joinable& joinable, JoinOptions options, SourceLocation where) : Join(Joinables{joinable}, options, where) {}

Join::Join(const Joinables& joinables, JoinOptions options, SourceLocation where) : options_(options), where_(where) {
  if (joinables.empty()) throw ValueError("The join context manager requires at least one joinable", where);
  ProcessGroup& group = joinables.front().get().join_process_group();
  for (size_t i = 0; i < joinables.size(); ++i) {
    Joinable& joinable = joinables[i].get();
    if (&joinable.join_process_group() != &group) {
      throw ValueError(where,
                       "Using join context manager with multiple process groups: joinable {} has another one than the "
                       "first; open a Join for one group only",
                       i);
    }
    const bool twice = std::any_of(joinables.begin(), joinables.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const Joinable& other) { return &other == &joinable; });
    if (joinable.join_ || twice) throw DistError(where, "join: joinable {} is inside another join already", i);
  }
  if (!options_.enable) return;

  context_ = open_joins.lock();
  if (!context_ || context_->levels.empty()) {
    context_ = std::make_shared<JoinContext>();
    context_->group = &group;
  } else if (context_->group != &group) {
    throw ValueError(where,
                     "Using join context manager with multiple process groups: the join at {} is open, over another "
                     "one. A rank that has finished one of them cannot follow the other: finish it first",
                     to_string(context_->levels.back().where));
  } else if (context_->members.size() + joinables.size() >= JoinWord::kLayer) {
    throw ValueError(where, "join: at most {} joinables", JoinWord::kLayer - 1);
  }
  const size_t before = context_->members.size();
  try {
    for (Joinable& joinable : joinables)
      context_->members.push_back({.joinable = &joinable, .hook = joinable.join_hook(options_)});
  } catch (...) {
    context_->members.resize(before);
    throw;
  }
  context_->levels.push_back({this, context_->members.size(), options_, where_});
  for (Joinable& joinable : joinables)
    joinable.join_ = this;
  open_joins = context_;
}

Join::~Join() { leave(); }

void Join::leave() noexcept {
  const std::shared_ptr<JoinContext> context = std::exchange(context_, nullptr);
  if (!context) return;
  // Joins that were left open inside this one end with it.
  while (!context->levels.empty()) {
    const bool own = context->levels.back().join == this;
    context->levels.pop_back();
    const size_t members = context->levels.empty() ? 0 : context->levels.back().members;
    while (context->members.size() > members) {
      context->members.back().joinable->join_ = nullptr;
      context->members.pop_back();
    }
    if (own) return;
  }
}

void Join::finish(SourceLocation where) {
  if (!context_ || context_->levels.empty()) return;
  JoinContext& context = *context_;
  if (context.levels.back().join != this) {
    throw DistError(where, "join: the join at {} is open inside this one; finish it first",
                    to_string(context.levels.back().where));
  }
  struct Leave {
    Join& join;
    ~Leave() { join.leave(); }
  } const leave_at_the_end{*this};
  where_ = where;
  bool is_last_joiner = true;
  context.shadows = true;
  struct Shadows {
    JoinContext& context;
    ~Shadows() { context.shadows = false; }
  } const shadows{context};
  while (true) {
    const auto heard = context.exchange(JoinWord::kNobody, 0, where);
    if (heard.source < 0) break;
    is_last_joiner = false;
    context.shadow(heard, where);
  }
  // Includes members of an outer join that continued in the meantime.
  const size_t outer = context.levels.size() > 1 ? context.levels[context.levels.size() - 2].members : 0;
  for (size_t i = 0; i < context.members.size(); ++i) {
    if (std::exchange(context.members[i].shadowed, false) || i >= outer)
      context.members[i].hook->post_hook(is_last_joiner);
  }
}

int Join::notify_join_context(Joinable& joinable, int64_t what, SourceLocation where) {
  if (!joinable.join_) return -1;
  if (what < 0 || what >= kSummed) throw ValueError(where, "notify_join_context: {} is not in 0..2^39 - 1", what);
  JoinContext& context = *joinable.join_->context_;
  if (context.shadows) return -1;
  const auto member = std::find_if(context.members.begin(), context.members.end(),
                                   [&](const auto& each) { return each.joinable == &joinable; });
  return context.exchange(static_cast<int>(member - context.members.begin()) + 1, what, where).source;
}

JoinedForward::JoinedForward(const Joinable& joinable) noexcept
    : before_(std::exchange(joined_forward, joinable.join_ ? joinable.join_->context_ : nullptr)) {}

JoinedForward::~JoinedForward() { joined_forward = std::move(before_); }

JoinedLayer JoinedLayer::of(const ProcessGroup& group) {
  JoinedLayer layer;
  if (joined_forward && joined_forward->group == &group) layer.context_ = joined_forward;
  return layer;
}

bool JoinedLayer::is_in_join() const noexcept { return context_ && !context_->levels.empty(); }

Topic JoinedLayer::before_all_gather(int64_t numel, const Topic& topic, SourceLocation where) const {
  if (!is_in_join()) return topic;
  context_->layers_exchange = true;
  context_->exchange(JoinWord::kLayer, numel, where);
  return values_of_layer();
}

Topic JoinedLayer::before_all_reduce(int64_t numel, const Topic& topic, SourceLocation where) const {
  if (!is_in_join()) return topic;
  context_->exchange(JoinWord::kLayer, numel | kSummed, where);
  return sums_of_layer();
}

bool Join::backward_waits(const Joinable& joinable) noexcept {
  if (!joinable.join_) return false;
  const JoinContext& context = *joinable.join_->context_;
  return context.layers_exchange || std::count_if(context.members.begin(), context.members.end(), [](const auto& each) {
                                      return each.hook->reduces_in_backward();
                                    }) > 1;
}

}  // namespace brigade::dist
