//===- CollectiveRows.cpp - Collectives between threads -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Bench.h"
#include "tools/zero-bench/Programs.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace mlir;
using namespace zero;
using namespace zero::bench;

/// Two buffers, and a protocol that does nothing.
static const char *const kProgram = R"(
zero.mesh @m <["dp" = {0}]>
zrt.program @collectives on @m inputs [] results [] [] {{
  zrt.slots @none [0.0]
  zrt.buffer @full : !zero.value<{1}xf32, partial = [dp]> role gradient in device
  zrt.buffer @slice : !zero.value<{1}xf32, sharded = [dp]> role gradient in device
  zrt.handler @idle {{
  }
  zrt.transition idle on begin to idle run [@idle]
}
)";

static bool addRows(const Options &options, int32_t ranks,
                    std::vector<Row> &rows, std::string &message) {
  auto context = createContext();
  int64_t elements = options.collectiveBytes / 4;
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      llvm::formatv(kProgram, ranks, elements).str(), context.get());
  if (!module)
    return false;
  // Every rank has its share of the copy, too.
  Pages<float> from(elements), to(elements);
  std::vector<double> scatters, reductions, copies;
  auto work = [&](int32_t rank, zero_rt_step *step, std::string &error) {
    // Only handlers make these calls otherwise.
    const auto &calls = **reinterpret_cast<const zero_rt_calls *const *>(step);
    auto collective = [&](llvm::function_ref<zero_rt_status()> run,
                          std::vector<double> &times) {
      bool ok = true;
      double time = measure([&] { ok = run() == ZERO_RT_OK; });
      if (!ok)
        error = zero_rt_message();
      if (rank == 0)
        times.push_back(time);
      return ok;
    };
    for (int round = 0; round < options.rounds; ++round) {
      if (!collective(
              [&] {
                return calls.reduce_scatter(step, 0, 1, 0,
                                            ZERO_RT_STREAM_COMPUTE);
              },
              scatters) ||
          !collective(
              [&] {
                return calls.all_reduce(step, 0, 0, 0, ZERO_RT_STREAM_COMPUTE);
              },
              reductions))
        return false;
      double time = measure([&] {
        std::memcpy(to.data() + rank * (elements / ranks),
                    from.data() + rank * (elements / ranks),
                    elements / ranks * 4);
      });
      if (rank == 0)
        copies.push_back(time);
    }
    return true;
  };
  if (!runRanks(*module, ranks, work, message))
    return false;
  auto add = [&](const char *name, std::vector<double> &times) {
    rows.push_back({llvm::formatv("{0}, {1} ranks", name, ranks).str(),
                    median(times), "memcpy by all ranks", median(copies),
                    "time / reference", median(times) / median(copies)});
  };
  add("reduce_scatter", scatters);
  add("all_reduce", reductions);
  return true;
}

bool zero::bench::runCollectiveRows(const Options &options,
                                    std::vector<Row> &rows,
                                    std::string &message) {
  return addRows(options, 2, rows, message) &&
         addRows(options, 4, rows, message);
}
