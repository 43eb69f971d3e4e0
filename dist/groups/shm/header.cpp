// Converts the flight recorder's CollectiveInfo and RankActivity to shared-memory records, and back.
#include <brigade/dist/groups/shm/rank_status.h>

#include <algorithm>
#include <cstring>

namespace brigade::dist::shm {

void copy_text(std::span<char> target, std::string_view text) noexcept {
  const size_t length = std::min(text.size(), target.size() - 1);
  if (length > 0) std::memcpy(target.data(), text.data(), length);
  target[length] = '\0';
}

void tell(Header& header, HeaderTexts& texts, const CollectiveInfo& info) noexcept {
  header.id = info.id();
  header.iteration = info.iteration;
  header.line = info.where.line;
  texts.kept_sizes = static_cast<uint32_t>(std::min(info.sizes.size(), texts.size_of_part.size()));
  for (size_t i = 0; i < texts.kept_sizes; ++i) {
    texts.size_of_part[i] = info.sizes[i].count;
    texts.dtype_of_part[i] = info.sizes[i].dtype;
  }
  texts.names.clear();
  texts.names.add(info.where.file);
  texts.names.add(info.topic.purpose.text());
  texts.names.add(info.topic.owner.name.text());
  texts.names.add(info.topic.hook.text());
  texts.names.add(info.text);
}

CollectiveInfo info_of(const Header& header, const HeaderTexts& texts) {
  const CollectiveId& id = header.id;
  CollectiveInfo info;
  info.sequence = id.sequence;
  info.kind = id.kind;
  info.mixed_op = id.op == CollectiveId::kSeveral;
  if (!info.mixed_op && id.op != CollectiveId::kNone) info.op = static_cast<ReduceOp>(id.op);
  info.mixed_dtype = id.dtype == CollectiveId::kSeveral;
  if (!info.mixed_dtype && id.dtype != CollectiveId::kNone) info.dtype = static_cast<DType>(id.dtype);
  info.count = id.count;
  info.root = id.root;
  info.part = id.part;
  info.parts = id.parts;
  info.parts_digest = id.parts_digest;
  for (size_t i = 0; i < std::min<size_t>(texts.kept_sizes, texts.size_of_part.size()); ++i)
    info.sizes.push_back({texts.size_of_part[i], texts.dtype_of_part[i]});
  info.iteration = header.iteration;
  decltype(texts.names)::Reader names(texts.names);
  info.where = Place(names.next(), header.line);
  info.topic.phase = id.phase;
  info.topic.purpose = Name(names.next(), id.purpose);
  info.topic.owner = {Name(names.next(), id.owner), id.owner_number};
  info.topic.index = id.index;
  info.topic.hook = Name(names.next(), id.hook);
  if (id.text != 0) info.text = names.next();
  info.text_hash = id.text;
  return info;
}

CollectiveInfo info_of(const RankBlock& block, uint32_t sequence) {
  return info_of(block.ring[sequence % kRing], block.texts[sequence % kRing]);
}

void tell(ActivityRecord& record, const RankActivity& activity) noexcept {
  record.doing = activity.doing;
  record.owner = activity.owner.number;
  record.local_backwards = activity.local_backwards;
  record.after = activity.after.number;
  record.where = activity.where.number;
  record.forwards = static_cast<uint8_t>(activity.forwards().size());
  record.missed = static_cast<uint8_t>(activity.missed().size());
  record.names.clear();
  record.names.add(activity.owner.name.text());
  record.names.add(activity.after.file.text());
  record.names.add(activity.where.file.text());
  record.names.add(activity.text);
  for (size_t i = 0; i < record.forwards; ++i) {
    const RankActivity::OfForward& each = activity.forwards()[i];
    record.forward[i] = {each.wrapper.number, each.forward.number};
    record.names.add(each.wrapper.name.text());
    record.names.add(each.forward.file.text());
  }
  for (size_t i = 0; i < record.missed; ++i) {
    const RankActivity::Missed& each = activity.missed()[i];
    record.miss[i] = {each.how, each.wrapper.number, each.line.number, each.opened.number};
    record.names.add(each.wrapper.name.text());
    record.names.add(each.line.file.text());
    record.names.add(each.opened.file.text());
  }
}

RankActivity activity_of(const ActivityRecord& record) {
  if (record.doing == Doing::Nothing) return {};
  decltype(record.names)::Reader names(record.names);
  const auto name = [&] { return Name(names.next()); };
  const auto line = [&](uint32_t number) {
    const Name file = name();
    return Line(file, number);
  };
  RankActivity activity;
  activity.doing = record.doing;
  activity.owner = {name(), record.owner};
  activity.local_backwards = record.local_backwards;
  activity.after = line(record.after);
  activity.where = line(record.where);
  activity.text = names.next();
  for (size_t i = 0; i < std::min<size_t>(record.forwards, RankActivity::kMostForwards); ++i) {
    const Name wrapper = name();
    activity.add(RankActivity::OfForward{{wrapper, record.forward[i].wrapper}, line(record.forward[i].line)});
  }
  for (size_t i = 0; i < std::min<size_t>(record.missed, RankActivity::kMostMissed); ++i) {
    const ActivityRecord::Missed& each = record.miss[i];
    const Name wrapper = name();
    const Line at = line(each.line);
    activity.add(RankActivity::Missed{each.how, {wrapper, each.wrapper}, at, line(each.opened)});
  }
  return activity;
}

}  // namespace brigade::dist::shm
