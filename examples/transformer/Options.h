//===- Options.h - The command line of char_model ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_OPTIONS_H
#define ZERO_EXAMPLES_TRANSFORMER_OPTIONS_H

#include "examples/transformer/Mesh.h"
#include "examples/transformer/Parameters.h"
#include "examples/transformer/Precision.h"

#include <cstdint>
#include <string>

namespace transformer {

struct Options {
  bool emitStep = false;
  bool listParameters = false;
  bool units = false; // of the step or the list that is written
  bool help = false;
  bool checkPreconditions = false;
  bool tcp = false;      // ranks are in a group over TCP, not one of threads
  bool launched = false; // this process is one rank
  std::string library;
  std::string text;   // empty: the licences
  std::string losses; // empty: written nowhere
  /// Whether the step divides by the number of backward passes and has its own
  /// learning rate, which it reports behind the norm.
  bool imported = false;
  std::string save; // folder of checkpoints; empty: none
  bool resume = false;
  int64_t saveEvery = 50; // steps
  ModelShape shape;
  Mesh mesh;
  int64_t backwards = 4;
  int64_t threads = 0; // of each rank; 0: as the cores allow
  int64_t gpus = 0;    // that the steps of ranks are on, in turn; 0: none
  int64_t steps = 1000;
  int64_t batch = 4;
  int64_t seed = 1;
  double rate = 0.004;
  Precision precision = Precision::bf16; // of gradients
};

/// On a wrong command line returns false and says what is wrong.
bool parseOptions(int argc, char **argv, Options &out, std::string &error);

/// What --help prints.
std::string helpText();

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_OPTIONS_H
