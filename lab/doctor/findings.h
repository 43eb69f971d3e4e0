// What the doctor says of a machine: what will be used, why, what is missing, and how to get it.
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
  std::string advice = {};  // what to do; "" where all is well
};

// In the order in which they are to be shown, by sections.
std::vector<Finding> findings_of(const Machine& machine, std::span<const dist::Backend> backends);

// For people: a line each, what is not well marked, with its advice below.
std::string in_words(std::span<const Finding> findings);

}  // namespace brigade::lab
