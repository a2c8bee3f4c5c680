//===- Units.h - Layers whose parameters ranks share at stage 3 -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_UNITS_H
#define ZERO_EXAMPLES_TRANSFORMER_UNITS_H

#include "examples/transformer/Model.h"

#include "zero_rt/step.h"

namespace transformer {

/// Gathers the parameters of a layer for its forward and for its backward pass.
/// If the step declares the order of its units, the library gathers those of
/// the next layer meanwhile.
class Units {
public:
  /// |units| has the number of each layer's unit, from layer |first| on, which
  /// is the first one of the rank's pipeline stage. Without units each rank has
  /// all parameters.
  /// |look| is called for each parameter of a unit that has been unsharded.
  Units(zero_rt_step *step, std::vector<int32_t> units, int64_t first, int rank,
        std::function<void(size_t parameter)> look)
      : step(step), units(std::move(units)), first(first), rank(rank),
        look(std::move(look)) {}

  bool empty() const { return units.empty(); }

  /// Called by a model.
  void use(int64_t layer, Use use) const;

  /// Runs |body| for each parameter of a unit, while it may be read. All ranks
  /// make this call.
  void visit(const std::function<void(size_t parameter)> &body) const;

private:
  void unshard(int64_t layer) const;
  void visitLayer(int64_t layer,
                  const std::function<void(size_t parameter)> &body) const;
  void reshard(int64_t layer) const;

  zero_rt_step *step;
  std::vector<int32_t> units;
  int64_t first;
  int rank;
  std::function<void(size_t parameter)> look;
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_UNITS_H
