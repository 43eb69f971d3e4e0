// The doctor's findings on a machine: what will be used, why, what is missing, and how to get it.
#pragma once

#include <brigade/dist/groups/backends.h>
#include <brigade/lab/doctor/machine.h>

#include <span>
#include <string>
#include <vector>

namespace brigade::lab {

enum class Health { Ok, Note, Broken };
const char* name(Health health);  // "ok", "note", "broken"

struct Finding {
  std::string section;  // "processor"
  std::string name;     // "instruction set"
  std::string value;    // "x86-64-v3"
  Health health = Health::Ok;
  std::string advice = {};  // what to do; "" if all is well
};

// In display order, by section.
std::vector<Finding> findings_of(const Machine& machine, std::span<const dist::Backend> backends);

// Formats the findings for display: one line each, with a mark and the advice below for those that are not ok.
std::string in_words(std::span<const Finding> findings);

}  // namespace brigade::lab
