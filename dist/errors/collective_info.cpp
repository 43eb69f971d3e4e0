// The ids of collectives, and their description as text.
#include <brigade/dist/errors/collective_info.h>

#include <brigade/core/fnv.h>

#include <fmt/format.h>

#include <string_view>

namespace brigade::dist {
namespace {

std::string sizes_in_words(const CollectiveInfo& info) {
  std::string text;
  for (const CollectiveInfo::Part& part : info.sizes) {
    if (!text.empty()) text += ", ";
    text += info.mixed_dtype ? fmt::format("{} x {}", part.count, name(part.dtype)) : std::to_string(part.count);
  }
  return info.sizes.size() < info.parts ? text + ", ..." : text;
}

}  // namespace

const char* name(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::Sum: return "sum";
    case ReduceOp::Avg: return "avg";
    case ReduceOp::Max: return "max";
    case ReduceOp::Min: return "min";
  }
  return "";
}

const char* name(CollectiveKind kind) noexcept {
  switch (kind) {
    case CollectiveKind::AllReduce: return "all_reduce";
    case CollectiveKind::Broadcast: return "broadcast";
    case CollectiveKind::AllGather: return "all_gather";
    case CollectiveKind::ReduceScatter: return "reduce_scatter";
    case CollectiveKind::Barrier: return "barrier";
    case CollectiveKind::NewGroup: return "new_group";
    case CollectiveKind::Message: return "message";
  }
  return "";
}

std::string in_words(const Owner& owner) {
  return owner.number == 1 ? owner.name.text() : fmt::format("{}#{}", owner.name.text(), owner.number);
}

std::string in_words(const Topic& topic) {
  std::string text = topic.purpose.text();
  if (topic.index >= 0) text += fmt::format(" {}", topic.index);
  if (!topic.owner.name.empty()) text += " of " + in_words(topic.owner);
  if (!topic.hook.empty()) text += ", by hook " + topic.hook.text();
  return text;
}

const Name& bucket_purpose() {
  static const Name purpose("bucket");
  return purpose;
}

uint64_t CollectiveId::digest() const noexcept {
  return fnv(std::string_view(reinterpret_cast<const char*>(this), sizeof(*this)));
}

CollectiveId CollectiveInfo::id() const noexcept {
  CollectiveId id;
  id.sequence = sequence;
  id.count = count;
  id.purpose = topic.purpose.hash();
  id.owner = topic.owner.name.hash();
  id.hook = topic.hook.hash();
  id.text = text_hash != 0 ? text_hash : hash_of_text(text);
  id.parts_digest = parts_digest;
  id.root = root;
  id.index = topic.index;
  id.owner_number = topic.owner.number;
  id.part = part;
  id.parts = parts;
  id.kind = kind;
  id.op = mixed_op ? CollectiveId::kSeveral : op ? static_cast<uint8_t>(*op) : CollectiveId::kNone;
  id.dtype = mixed_dtype ? CollectiveId::kSeveral : dtype ? static_cast<uint8_t>(*dtype) : CollectiveId::kNone;
  id.phase = topic.phase;
  return id;
}

bool CollectiveInfo::matches(const CollectiveInfo& other) const noexcept {
  CollectiveId mine = id();
  mine.sequence = other.sequence;
  return mine == other.id();
}

std::string describe(const CollectiveInfo& info) {
  const std::string topic = info.topic.phase == Phase::Program ? info.text : in_words(info.topic);
  if (info.part > 0) return fmt::format("part {} of {}{}{}", info.part, info.parts, topic.empty() ? "" : ": ", topic);
  if (info.parts > 0) return fmt::format("{} coalesced: {}", info.parts, sizes_in_words(info));
  return topic;
}

std::string op_in_words(const CollectiveInfo& info) {
  if (info.mixed_op) return "several";
  return info.op ? name(*info.op) : "";
}

std::string dtype_in_words(const CollectiveInfo& info) {
  if (info.mixed_dtype) return "several dtypes";
  return info.dtype ? brigade::name(*info.dtype) : "";
}

std::string in_words(const CollectiveInfo& info) {
  return call_in_words(info) + fmt::format(" (collective {})", info.sequence);
}

std::string call_in_words(const CollectiveInfo& info) {
  std::string text = name(info.kind);
  if (const std::string op = op_in_words(info); !op.empty()) text += fmt::format("({})", op);
  if (info.root >= 0) text += fmt::format("(from rank {})", info.root);
  if (const std::string dtype = dtype_in_words(info); !dtype.empty())
    text += fmt::format(" of {} x {}", info.count, dtype);
  if (const std::string words = describe(info); !words.empty()) text += fmt::format(" \"{}\"", words);
  if (info.iteration > 0) text += fmt::format(", number {},", info.iteration);
  if (info.where) text += " at " + to_string(info.where);
  return text;
}

}  // namespace brigade::dist
