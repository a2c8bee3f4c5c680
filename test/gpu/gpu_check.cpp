//===- gpu_check.cpp - Steps on a GPU against the processor's -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs compiled steps with random gradients on the processor and on a GPU, and
// compares results and all state bit by bit. It knows libraries and the runtime
// only, so that it runs where there is no compiler.
//
//===----------------------------------------------------------------------===//

#include "StepRun.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace zero::check;

static const char *const usage =
    R"(usage: gpu_check [--device=cuda|host] [--gpus=N,...] LIBRARY...

Runs each step on the processor and on GPUs (default 0), which ranks take in turn, once
call by call and once as CUDA graphs, and compares results and state bit by bit.
--device=host compares runs on the processor.
)";

namespace {
struct Options {
  Place place = {ZERO_RT_DEVICE_CUDA};
  std::vector<std::string> libraries;
};
} // namespace

/// False where |arguments| are wrong.
static bool parse(int count, char **arguments, Options &options) {
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i];
    if (argument == "--device=host")
      options.place.device = ZERO_RT_DEVICE_HOST;
    else if (argument == "--device=cuda")
      options.place.device = ZERO_RT_DEVICE_CUDA;
    else if (argument.rfind("--gpus=", 0) == 0) {
      std::stringstream list(argument.substr(std::strlen("--gpus=")));
      options.place.gpus.clear();
      for (std::string gpu; std::getline(list, gpu, ',');) {
        if (gpu.empty() || gpu.size() > 3 ||
            gpu.find_first_not_of("0123456789") != std::string::npos)
          return false;
        options.place.gpus.push_back(std::stoi(gpu));
      }
    } else if (argument.rfind("-", 0) == 0)
      return false;
    else
      options.libraries.push_back(argument);
  }
  return !options.libraries.empty() && !options.place.gpus.empty();
}

/// How many pieces of what both runs left differ; -1 if they cannot be
/// compared.
static int64_t countDifferences(const StepRun &a, const StepRun &b) {
  int64_t differences = 0;
  for (size_t r = 0; r < a.ranks.size(); ++r) {
    const std::vector<Piece> &mine = a.ranks[r].pieces;
    const std::vector<Piece> &other = b.ranks[r].pieces;
    if (mine.size() != other.size())
      return -1;
    for (size_t i = 0; i < mine.size(); ++i) {
      if (mine[i].bytes == other[i].bytes)
        continue;
      if (differences++ == 0)
        std::printf("  first difference: %s on rank %zu\n",
                    mine[i].name.c_str(), r);
    }
  }
  return differences;
}

int main(int count, char **arguments) {
  Options options;
  if (!parse(count, arguments, options)) {
    std::fputs(usage, stderr);
    return 2;
  }
  std::printf("%-44s %5s %6s %11s %11s\n", "step", "ranks", "pieces",
              "differences", "as graphs");
  int failures = 0;
  for (const std::string &path : options.libraries) {
    StepLibrary library;
    std::string error = library.open(path);
    StepRun processor, other, graphs;
    Place asGraphs = options.place;
    asGraphs.graphs = true;
    if (error.empty())
      error = processor.run(library, Place());
    if (error.empty())
      error = other.run(library, options.place);
    if (error.empty())
      error = graphs.run(library, asGraphs);
    if (!error.empty()) {
      std::printf("%-44s %s\n", path.c_str(), error.c_str());
      ++failures;
      continue;
    }
    int64_t differences = countDifferences(processor, other);
    int64_t inGraphs = countDifferences(processor, graphs);
    std::printf("%-44s %5zu %6zu %11lld %11lld\n", library.name.c_str(),
                other.ranks.size(), other.ranks[0].pieces.size(),
                static_cast<long long>(differences),
                static_cast<long long>(inGraphs));
    failures += differences != 0 || inGraphs != 0;
  }
  std::printf("%zu steps, %d failures\n", options.libraries.size(), failures);
  return failures != 0;
}
