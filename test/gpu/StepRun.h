//===- StepRun.h - Runs a compiled step with random gradients ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_GPU_STEPRUN_H
#define ZERO_TEST_GPU_STEPRUN_H

#include "zero_rt/library.h"

#include <string>
#include <vector>

namespace zero::check {

/// A step's library, opened.
struct StepLibrary {
  /// Opens |path|, .../libNAME.so; empty on success.
  std::string open(const std::string &path);

  std::string name;
  const zero_rt_library *tables = nullptr;
};

/// A result, or an interval of state.
struct Piece {
  std::string name;
  std::vector<char> bytes;
};

/// What one rank has after its steps.
struct RankState {
  std::vector<Piece> pieces;
  std::string error;
};

/// Where ranks are.
struct Place {
  std::string device = "host";
  std::vector<int32_t> gpus = {0}; // which ranks take in turn
  bool graphs = false;
  /// Fresh memory is filled, so that a read before a write changes bits; but
  /// then initcheck of compute-sanitizer sees no such read.
  bool poison = true;
  /// This process is one rank, which finds the others over TCP as the
  /// environment says.
  bool processes = false;
  /// Before which step the process kills itself; -1: never.
  int dies = -1;
};

/// The same numbers on every device: those of a rank, step and backward pass
/// are drawn from their number.
class StepRun {
public:
  /// Makes a few steps on all ranks, threads of this process, or on the one
  /// that it is. Empty on success.
  std::string run(const StepLibrary &library, const Place &place);

  int32_t first = 0; // the rank that ranks[0] is
  std::vector<RankState> ranks;
};

} // namespace zero::check

#endif // ZERO_TEST_GPU_STEPRUN_H
