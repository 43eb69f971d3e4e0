// Advisories: verdicts that do not stop training. Each is kept, and a warning is told once, by rank 0
// (core/warning.h): at once where all ranks know it, otherwise when the ranks meet, with its ranks.
#pragma once

#include <brigade/core/warning.h>
#include <brigade/dist/errors/verdict.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

class Advisories {
 public:
  explicit Advisories(int rank) noexcept : rank_(rank) {}
  // Tells what the ranks have not met for.
  ~Advisories();
  Advisories(const Advisories&) = delete;
  Advisories& operator=(const Advisories&) = delete;

  // One that every rank adds alike. `key` says when two are the same; only the first is kept.
  void add(const std::string& key, Verdict verdict) { keep(key, std::move(verdict), true); }
  // One that other ranks may not know of.
  void add_own(const std::string& key, Verdict verdict) { keep(key, std::move(verdict), false); }
  // The ranks will not meet: add_own() tells at once.
  void tell_alone() noexcept { alone_ = true; }
  bool has_undelivered() const noexcept { return !undelivered_.empty(); }
  // Whoever takes them tells them.
  std::vector<Warning> take_undelivered() { return std::exchange(undelivered_, {}); }

  bool has(const std::string& key) const { return keys_.contains(key); }
  const std::vector<Verdict>& all() const noexcept { return verdicts_; }

 private:
  void keep(const std::string& key, Verdict verdict, bool everywhere);
  void tell_own(const Warning& warning) const;

  int rank_;
  bool alone_ = false;
  std::set<std::string> keys_;
  std::vector<Verdict> verdicts_;
  std::vector<Warning> undelivered_;
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
