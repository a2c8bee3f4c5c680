//===- Mesh.h - The ranks that train together -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_MESH_H
#define ZERO_EXAMPLES_TRANSFORMER_MESH_H

#include <cstdint>
#include <string>

namespace transformer {

/// Ranks are numbered row-major over these, as in the step's text.
struct Mesh {
  int64_t stages = 1; // pp: of the pipeline
  int64_t copies = 4; // dp: of each stage, with a batch each

  int64_t ranks() const { return stages * copies; }
  int64_t stageOf(int64_t rank) const { return rank / copies; }
  int64_t copyOf(int64_t rank) const { return rank % copies; }
  /// Whether |rank| is on the last stage, which knows the loss.
  bool isLast(int64_t rank) const { return stageOf(rank) + 1 == stages; }
};

/// "pp=2,dp=2", in any order; what is absent is 1. False for anything else and
/// for more than 256 ranks.
bool parseMesh(const std::string &text, Mesh &out);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_MESH_H
