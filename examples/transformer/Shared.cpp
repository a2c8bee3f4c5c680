//===- Shared.cpp - What ranks of one process share -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Shared.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace transformer {

/// The ranks of this process.
static std::vector<int> listRanks(const Mesh &mesh, const Launch *launch) {
  if (launch)
    return {launch->rank};
  std::vector<int> ranks(size_t(mesh.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Shared::Shared(const Options &options, const Text &text,
               const zero_rt_library &library, const Launch *launch)
    : options(options), text(text), library(library),
      parameters(listParameters(options.shape, options.mesh.stages)),
      initial(initialValues(parameters, uint64_t(options.seed))),
      ranks(listRanks(options.mesh, launch)),
      firstGpu(launch ? launch->localRank : 0),
      reports(!launch || (options.mesh.isLast(launch->rank) &&
                          options.mesh.copyOf(launch->rank) == 0)),
      progress(options.steps, options.mesh.copies * options.backwards *
                                  options.batch * options.shape.context),
      losses(options.mesh.copies),
      views(options.mesh.copies,
            std::vector<const float *>(parameters.size())) {
  pthread_barrier_init(&barrier, nullptr, unsigned(ranks.size()));
  if (!launch)
    reference = std::make_unique<Reference>(parameters, initial,
                                            int(options.mesh.copies));
}

void Shared::finishStep(int64_t step, double rate, double norm,
                        bool isSkipped) {
  // All copies, or that of the one rank here.
  double copies = reference ? double(options.mesh.copies) : 1;
  double mean = 0;
  for (int rank : ranks)
    if (options.mesh.isLast(rank))
      mean += losses[size_t(options.mesh.copyOf(rank))] / copies;
  ++result.steps;
  result.skipped += isSkipped;
  if (options.mesh.isLast(ranks.back()))
    result.losses.push_back(mean);
  if (reference && isSkipped) {
    reference->drop();
  } else if (reference) {
    double expected = reference->update(rate);
    result.normDifference =
        std::max(result.normDifference,
                 std::fabs(norm - expected) / std::max(expected, 1e-30));
  }
  if (reports)
    progress.report(step + 1, mean, norm);
}

void Shared::compareRanks() {
  for (size_t i = 0; i < parameters.size(); ++i) {
    int64_t elements = parameters[i].elements();
    const float *mine = views[0][i];
    result.parameters.emplace_back(mine, mine + elements);
    for (const auto &view : views)
      result.ranksAgree &=
          !std::memcmp(mine, view[i], size_t(elements) * sizeof(float));
  }
  for (const auto &view : views)
    result.difference =
        std::max(result.difference, reference->difference(view));
  result.tolerance = reference->tolerance();
}

} // namespace transformer
