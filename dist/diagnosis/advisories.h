// Advisories: verdicts that do not stop training. Each is kept, and each warning is printed once, by rank 0
// (core/warning.h): at once if all ranks know of it, otherwise at the next exchange of warnings, with the ranks that it
// concerns.
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
  // Prints the warnings that the ranks have not exchanged yet.
  ~Advisories();
  Advisories(const Advisories&) = delete;
  Advisories& operator=(const Advisories&) = delete;

  // Adds an advisory that every rank adds too. Advisories with the same `key` are the same; only the first is kept.
  void add(const std::string& key, Verdict verdict) { keep(key, std::move(verdict), true); }
  // Adds an advisory that other ranks may not know of.
  void add_own(const std::string& key, Verdict verdict) { keep(key, std::move(verdict), false); }
  // For ranks that will not exchange warnings: add_own() prints at once.
  void tell_alone() noexcept { alone_ = true; }
  bool has_undelivered() const noexcept { return !undelivered_.empty(); }
  // The caller must print the warnings that it takes.
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

// RAII: collects the advisories that this thread makes, instead of printing them. Nests.
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
