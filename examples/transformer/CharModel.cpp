//===- CharModel.cpp - Trains a transformer with a compiled step ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/CharModel.h"

#include "examples/transformer/Check.h"
#include "examples/transformer/LossCurve.h"
#include "examples/transformer/Options.h"
#include "examples/transformer/ParameterList.h"
#include "examples/transformer/PlanCheck.h"
#include "examples/transformer/StepText.h"
#include "examples/transformer/Text.h"
#include "examples/transformer/Trainer.h"

#include <cblas.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>

namespace transformer {

/// "1 step" and "2 steps". |plural| is the ending of other numbers.
static std::string countOf(int64_t count, const std::string &thing,
                           const char *plural = "s") {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : plural);
}

/// Writes a line for each step.
static void writeLosses(const std::string &path,
                        const std::vector<double> &losses) {
  std::ofstream file(path);
  file.precision(std::numeric_limits<double>::max_digits10);
  for (double loss : losses)
    file << loss << "\n";
  if (!file.flush())
    fail("cannot write '" + path + "': " + std::strerror(errno));
}

/// The file for the losses of this process; empty: none.
static std::string fileOfLosses(const Options &options, const Launch *launch) {
  if (options.losses.empty() || !launch)
    return options.losses;
  return options.mesh.isLast(launch->rank)
             ? options.losses + "." + std::to_string(launch->rank)
             : "";
}

/// Ends the program if |path| cannot be written, before it trains.
static void checkFile(const std::string &path) {
  if (!path.empty() && !std::ofstream(path, std::ios::app))
    fail("cannot write '" + path + "': " + std::strerror(errno));
}

/// Prints |text| and returns the exit code.
static int print(const std::string &text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout))
    fail(std::string("cannot write to stdout: ") + std::strerror(errno));
  return 0;
}

/// Reports a rank that is a process. Rank 0 prints the comparison with the
/// plan. The first copy of the last stage prints its losses. Returns whether
/// counters are as planned.
static bool reportRank(const Options &options, const TrainResult &result,
                       int rank) {
  if (options.mesh.isLast(rank) && options.mesh.copyOf(rank) == 0)
    std::printf("\nloss of rank %d\n%s", rank,
                lossCurve(result.losses, size_t(result.first)).c_str());
  if (rank != 0)
    return true;
  bool good = comparePlan(options, result.steps, result.counters[0]);
  std::printf("\n%s: %s on %s in %.0f s\n", good ? "ok" : "failed",
              countOf(result.steps, "step").c_str(),
              countOf(options.mesh.ranks(), "process", "es").c_str(),
              result.seconds);
  return good;
}

/// Prints what came out; returns whether all of it is as it has to be.
static bool report(const Options &options, const Text &text,
                   const TrainResult &result, const Launch *launch) {
  if (result.steps == 0)
    fail("all " + std::to_string(options.steps) +
         " steps were made before; give more --steps");
  if (std::string file = fileOfLosses(options, launch); !file.empty())
    writeLosses(file, result.losses);
  if (launch)
    return reportRank(options, result, launch->rank);
  std::printf("\nloss\n%s",
              lossCurve(result.losses, size_t(result.first)).c_str());
  std::printf("\nsample\n%s\n",
              generate(options, text, result.parameters, 400).c_str());
  bool good = comparePlan(options, result.steps, result.counters[0]);

  // Sums of squares of the same gradients, in f64 on both sides; only the
  // f32 sums and means below them round.
  const double normTolerance = 1e-6;
  if (hasLossScale(options.precision))
    std::printf("\nloss scale %g at the end; skipped %s\n", result.lossScale,
                countOf(result.skipped, "step").c_str());
  bool close = result.difference <= result.tolerance;
  bool normClose = result.normDifference <= normTolerance;
  std::printf("\nagainst AdamW in f64 on the same gradients\n"
              "  largest difference of a parameter  %.3e  (rounding explains "
              "%.3e)%s\n"
              "  largest relative one of the norm   %.3e  (rounding explains "
              "%.3e)%s\n"
              "  parameters on all ranks            %s\n",
              result.difference, result.tolerance, close ? "" : "  TOO LARGE",
              result.normDifference, normTolerance,
              normClose ? "" : "  TOO LARGE",
              result.ranksAgree ? "equal, bit by bit" : "DIFFERENT");
  std::printf("\n%s: loss %.3f -> %.3f in %s and %.0f s\n",
              good && close && normClose && result.ranksAgree ? "ok" : "failed",
              result.losses.front(), result.losses.back(),
              countOf(result.steps, "step").c_str(), result.seconds);
  return good && close && normClose && result.ranksAgree;
}

static void printSize(const Options &options, const Text &text) {
  int64_t elements = 0;
  for (const Parameter &parameter : listParameters(options.shape))
    elements += parameter.elements();
  std::printf(
      "%lld parameters, %lld characters of text, %lld different; "
      "%s x %s%s\n",
      (long long)elements, (long long)text.size(), (long long)text.vocabulary(),
      countOf(options.mesh.ranks(), "rank").c_str(),
      countOf(options.backwards, "backward pass", "es").c_str(),
      options.mesh.stages > 1
          ? (", in " + std::to_string(options.mesh.stages) + " pipeline stages")
                .c_str()
          : "");
}

/// Ends the program if the launcher has started another number of ranks.
static void checkLaunch(const Options &options, const Launch &launch) {
  if (launch.ranks != options.mesh.ranks())
    fail("the launcher has started " + countOf(launch.ranks, "process", "es") +
         ", expected " + std::to_string(options.mesh.ranks()) +
         ", one for each rank of --mesh");
}

int runTool(int argc, char **argv, const Launch *launch) {
  Options options;
  Text text;
  std::string error;
  if (!parseOptions(argc, argv, options, error)) {
    std::fprintf(stderr, "char_model: %s; see --help\n", error.c_str());
    return 2;
  }
  if (options.help)
    return print(helpText());
  if (!Text::read(options.text, text, error))
    fail(error);
  if (text.size() <= options.shape.context)
    fail("the text has " + std::to_string(text.size()) +
         " characters, too few for a context of " +
         std::to_string(options.shape.context));
  options.shape.vocabulary = text.vocabulary();
  if (options.listParameters)
    return print(parameterListText(options.shape, options.units));
  if (options.emitStep)
    return print(stepText(options.shape, options.mesh, options.precision,
                          options.units));

  Launch found;
  if (options.launched && !launch) {
    found = readLaunch();
    launch = &found;
  }
  if (launch)
    checkLaunch(options, *launch);
  checkFile(fileOfLosses(options, launch));
  const zero_rt_library *library = nullptr;
  if (zero_rt_open(options.library.c_str(), &library))
    fail(zero_rt_message());
  openblas_set_num_threads(1); // the ranks are the threads
  if (!launch || launch->rank == 0)
    printSize(options, text);
  return report(options, text, train(options, text, *library, launch), launch)
             ? 0
             : 1;
}

} // namespace transformer
