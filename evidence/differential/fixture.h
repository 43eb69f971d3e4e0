// A program, PyTorch's results for it, and how far our results may differ.
#pragma once

#include "differential/run.h"

#include <map>
#include <string>
#include <vector>

namespace brigade::differential {

struct Expected {
  Snapshot snapshot;
  double bound = 0;  // tolerance per element, in addition to a few roundings of the element
};

struct Fixture {
  Program program;
  std::vector<size_t> refused;  // line numbers
  std::map<std::string, Expected> variables, gradients;
};

// Reads one fixture per line of a gzipped file. Throws IoError, ValueError.
std::vector<Fixture> read_fixtures(const std::string& path);

// The first difference, in one line; "" if there is none.
std::string difference(const Fixture& fixture, const Result& result);

// The program without the lines that do not affect the difference: removing them leaves the wrong value the same.
Program shrunken(const Fixture& fixture, const Result& result);

}  // namespace brigade::differential
