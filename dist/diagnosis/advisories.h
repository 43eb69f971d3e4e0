// Advisories: verdicts that do not stop training. Each is kept, and a warning is told once, on rank
// 0 (core/warning.h).
#pragma once

#include <brigade/dist/diagnosis/verdict.h>

#include <set>
#include <string>
#include <vector>

namespace brigade::dist {

class Advisories {
 public:
  // `key` says when two are the same; only the first is kept. Returns whether it was.
  bool add(const std::string& key, Verdict verdict, bool print);
  bool has(const std::string& key) const { return keys_.contains(key); }
  const std::vector<Verdict>& all() const noexcept { return verdicts_; }

 private:
  std::set<std::string> keys_;
  std::vector<Verdict> verdicts_;
};

// While it lives, collects every advisory that this thread makes (and nothing is printed by it).
// Nests.
class AdvisoryCollector {
 public:
  AdvisoryCollector() noexcept;
  ~AdvisoryCollector();
  AdvisoryCollector(const AdvisoryCollector&) = delete;
  AdvisoryCollector& operator=(const AdvisoryCollector&) = delete;
  const std::vector<Verdict>& verdicts() const noexcept { return verdicts_; }

 private:
  friend class Advisories;
  std::vector<Verdict> verdicts_;
  AdvisoryCollector* outer_;
};

}  // namespace brigade::dist
