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

#include "Contexts.h"
#include "StepRun.h"
#include "zero_rt/cuda_code.h"
#include "zero_rt/step.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace zero::check;

static const char *const usage =
    R"(usage: gpu_check [OPTION...] LIBRARY...

Runs each step on the processor and on GPUs, once call by call and once as CUDA
graphs, and compares results and state bit by bit.

  --device=host  compares two runs on the processor
  --gpus=N,...   GPUs that the ranks take in turn (default 0)
  --no-poison    does not fill fresh memory, for initcheck
  --process      this process is one rank; RANK, WORLD_SIZE, MASTER_ADDR and
                 ZERO_RT_PORT name the rank, and no graphs are made
  --die=N        with --process: kills itself before step N
)";

namespace {
struct Options {
  Place place = {"cuda"};
  std::vector<std::string> libraries;
};
} // namespace

/// Numbers of up to three digits, with commas between.
static bool parseNumbers(const std::string &text, std::vector<int32_t> &out) {
  out.clear();
  std::stringstream list(text);
  for (std::string number; std::getline(list, number, ',');) {
    if (number.empty() || number.size() > 3 ||
        number.find_first_not_of("0123456789") != std::string::npos)
      return false;
    out.push_back(std::stoi(number));
  }
  return !out.empty();
}

/// False where |arguments| are wrong.
static bool parse(int count, char **arguments, Options &options) {
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i];
    std::vector<int32_t> dies;
    if (argument == "--device=host") {
      options.place.device = "host";
    } else if (argument == "--device=cuda") {
      options.place.device = "cuda";
    } else if (argument == "--no-poison") {
      options.place.poison = false;
    } else if (argument == "--process") {
      options.place.processes = true;
    } else if (argument.rfind("--die=", 0) == 0) {
      if (!parseNumbers(argument.substr(std::strlen("--die=")), dies))
        return false;
      options.place.dies = dies[0];
    } else if (argument.rfind("--gpus=", 0) == 0) {
      if (!parseNumbers(argument.substr(std::strlen("--gpus=")),
                        options.place.gpus))
        return false;
    } else if (argument.rfind("-", 0) == 0) {
      return false;
    } else {
      options.libraries.push_back(argument);
    }
  }
  bool dies = options.place.dies >= 0;
  return !options.libraries.empty() && (!dies || options.place.processes);
}

/// What of |library| a GPU of |arch| runs; without one, what it has.
static std::string describeCode(const StepLibrary &library,
                                const std::string &arch) {
  zero_rt_executable executable = {};
  executable.struct_size = sizeof(executable);
  if (zero_rt_library_executable(library.tables, 0, &executable))
    return "none";
  auto *code = static_cast<const zero_rt_cuda_code *>(executable.data);
  for (int64_t c = 0; c < code->num_cubins; ++c)
    if (arch.empty() || arch == code->cubins[c].arch)
      return code->cubins[c].arch;
  return "PTX";
}

/// How many pieces of what |b| left are not as |a|, which has all ranks, left
/// them; -1 if they cannot be compared.
static int64_t countDifferences(const StepRun &a, const StepRun &b) {
  int64_t differences = 0;
  for (size_t r = 0; r < b.ranks.size(); ++r) {
    size_t rank = r + size_t(b.first);
    const std::vector<Piece> &mine = a.ranks[rank].pieces;
    const std::vector<Piece> &other = b.ranks[r].pieces;
    if (mine.size() != other.size())
      return -1;
    for (size_t i = 0; i < mine.size(); ++i) {
      if (mine[i].bytes == other[i].bytes)
        continue;
      if (differences++ == 0)
        std::printf("  first difference: %s on rank %zu\n",
                    mine[i].name.c_str(), rank);
    }
  }
  return differences;
}

/// Runs |path| and prints its row; false after a failure.
static bool checkLibrary(const std::string &path, const Place &place,
                         const std::string &arch) {
  StepLibrary library;
  std::string error = library.open(path);
  StepRun processor, other, graphs;
  Place asGraphs = place;
  asGraphs.graphs = true;
  if (error.empty())
    error = processor.run(library, Place());
  if (error.empty())
    error = other.run(library, place);
  if (error.empty() && !place.processes)
    error = graphs.run(library, asGraphs);
  if (!error.empty()) {
    std::printf("%-24s %s\n",
                (library.name.empty() ? path : library.name).c_str(),
                error.c_str());
    return false;
  }
  int64_t differences = countDifferences(processor, other);
  int64_t inGraphs = place.processes ? 0 : countDifferences(processor, graphs);
  std::string shown = place.processes ? "-" : std::to_string(inGraphs);
  std::string name = library.name;
  if (place.processes)
    name += ", rank " + std::to_string(other.first);
  std::printf("%-24s %-6s %5zu %6zu %11lld %9s\n", name.c_str(),
              describeCode(library, arch).c_str(), processor.ranks.size(),
              other.ranks[0].pieces.size(), static_cast<long long>(differences),
              shown.c_str());
  return differences == 0 && inGraphs == 0;
}

int main(int count, char **arguments) {
  Options options;
  if (!parse(count, arguments, options)) {
    std::fputs(usage, stderr);
    return 2;
  }
  // Who kills this gets the rows that are done.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::string arch;
  if (options.place.device == "cuda")
    holdContexts(options.place.gpus, arch);
  int failures = 0;
  for (const std::string &path : options.libraries)
    failures += !checkLibrary(path, options.place, arch);
  return failures != 0;
}
