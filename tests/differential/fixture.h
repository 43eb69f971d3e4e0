// A program with what PyTorch gave for it, and how far from that a result may lie.
#pragma once

#include "differential/program.h"
#include "differential/run.h"

#include <map>
#include <string>
#include <vector>

namespace brigade::differential {

struct Expected {
  Snapshot snapshot;
  double bound = 0;  // of each element's distance, besides a few roundings of the element itself
};

struct Fixture {
  Program program;
  std::vector<size_t> refused;  // lines
  std::map<std::string, Expected> variables, gradients;
};

// One for each line of a gzipped file. Throws IoError, ValueError.
std::vector<Fixture> read_fixtures(const std::string& path);

// What differs first, in one line; "" when nothing does.
std::string difference(const Fixture& fixture, const Result& result);

// The program without the lines that what differs does not depend on: those without which it comes out the same.
Program shrunken(const Fixture& fixture, const Result& result);

}  // namespace brigade::differential
