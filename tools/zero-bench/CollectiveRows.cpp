//===- CollectiveRows.cpp - Collectives between threads and processes -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Bench.h"
#include "tools/zero-bench/MpiTeam.h"
#include "tools/zero-bench/Programs.h"
#include "tools/zero-bench/References.h"
#include "tools/zero-bench/Team.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <memory>
#include <optional>

using namespace mlir;
using namespace zero;
using namespace zero::bench;

/// Two buffers, a few bytes, and a protocol that does nothing.
static const char *const kProgram = R"(
zero.mesh @m <["dp" = {0}]>
zrt.program @collectives on @m inputs [] results [] [] {{
  zrt.slots @none [0.0]
  zrt.buffer @full : !zero.value<{1}xf32, partial = [dp]> role gradient in device
  zrt.buffer @slice : !zero.value<{1}xf32, sharded = [dp]> role gradient in device
  zrt.buffer @few : !zero.value<64xf32, partial = [dp]> role gradient in device
  zrt.handler @idle {{
  }
  zrt.transition idle on begin to idle run [@idle]
}
)";

static const zero_rt_calls &callsOf(zero_rt_step *step) {
  // Only handlers make these calls otherwise.
  return **reinterpret_cast<const zero_rt_calls *const *>(step);
}

namespace {
struct Collective {
  const char *name;
  Team::Operation run;
  /// The reads and writes of all ranks, without waits; null: not measured.
  Team::Operation limit;
};

/// What the limits read and write.
struct Arrays {
  Arrays(int32_t ranks, int64_t elements) : slice(elements / ranks) {
    for (int32_t r = 0; r < ranks; ++r) {
      sources.push_back(std::make_unique<Pages<float>>(elements));
      results.push_back(std::make_unique<Pages<float>>(elements));
      // Pages that were never written share one page of zeros.
      std::fill_n(sources.back()->data(), elements, 1.0f);
    }
  }
  /// Sums slice |rank| of all sources.
  void sum(int32_t rank) {
    std::vector<const float *> slices;
    for (auto &source : sources)
      slices.push_back(source->data() + rank * slice);
    streamsOfSum(slices.data(), int32_t(slices.size()),
                 results[rank]->data() + rank * slice, slice);
  }
  /// Copies the slices of others.
  void gather(int32_t rank) {
    for (size_t r = 0; r < sources.size(); ++r) {
      const float *source = sources[r]->data() + r * slice;
      if (int32_t(r) != rank)
        streamsOfSum(&source, 1, results[rank]->data() + r * slice, slice);
    }
  }
  int64_t slice;
  std::vector<std::unique_ptr<Pages<float>>> sources, results; // by rank
};
} // namespace

static bool addRows(const Options &options, int32_t ranks,
                    std::vector<Row> &rows, std::string &message) {
  auto context = createContext();
  int64_t elements = options.collectiveBytes / 4;
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      llvm::formatv(kProgram, ranks, elements).str(), context.get());
  if (!module)
    return false;
  FailureOr<CompiledStep> compiled = compileStep(*module, {});
  if (failed(compiled)) {
    message = "a step does not compile";
    return false;
  }
  const zero_rt_library *library = openStep(*compiled, message);
  if (!library)
    return false;

  const int32_t stream = ZERO_RT_STREAM_COMPUTE;
  auto arrays = std::make_shared<Arrays>(ranks, elements);
  const std::vector<Collective> collectives = {
      {"reduce_scatter",
       [=](int32_t, zero_rt_step *step) {
         return callsOf(step).reduce_scatter(step, 0, 1, 0, stream);
       },
       [=](int32_t rank, zero_rt_step *) {
         arrays->sum(rank);
         return ZERO_RT_OK;
       }},
      {"all_reduce",
       [=](int32_t, zero_rt_step *step) {
         return callsOf(step).all_reduce(step, 0, 0, 0, stream);
       },
       [=](int32_t rank, zero_rt_step *) {
         arrays->sum(rank);
         arrays->gather(rank);
         return ZERO_RT_OK;
       }},
      {"all_gather",
       [=](int32_t, zero_rt_step *step) {
         return callsOf(step).all_gather(step, 0, 0, stream);
       },
       [=](int32_t rank, zero_rt_step *) {
         arrays->gather(rank);
         return ZERO_RT_OK;
       }},
      {"tiny all_reduce",
       [=](int32_t, zero_rt_step *step) {
         return callsOf(step).all_reduce(step, 2, 2, 0, stream);
       },
       nullptr}};
  std::vector<Team::Operation> operations, limits;
  for (const Collective &collective : collectives) {
    operations.push_back(collective.run);
    if (collective.limit)
      limits.push_back(collective.limit);
  }
  Team processes(Team::Kind::processes, library, ranks, operations);
  std::optional<Team> tcp;
  std::optional<MpiTeam> mpi;
  if (MpiTeam::isAvailable()) {
    tcp.emplace(Team::Kind::tcp, library, ranks, operations);
    mpi.emplace(ranks, options.collectiveBytes);
  }
  size_t firstLimit = operations.size();
  operations.insert(operations.end(), limits.begin(), limits.end());
  Team threads(Team::Kind::threads, library, ranks, operations);

  for (size_t i = 0; i < collectives.size(); ++i) {
    auto name = [&](const char *kind) {
      return llvm::formatv("{0}, {1} {2}", collectives[i].name, ranks, kind)
          .str();
    };
    auto add = [&](const char *kind, Team &team, const char *reference,
                   llvm::function_ref<double()> runReference, double limit) {
      std::vector<double> times, references, ratios;
      // The first round only touches memory.
      for (int round = 0; round <= options.rounds && message.empty(); ++round) {
        double time = team.run(i, message);
        double base = runReference();
        if (round == 0)
          continue;
        times.push_back(time);
        references.push_back(base);
        ratios.push_back(time / base);
      }
      if (!message.empty())
        return;
      rows.push_back({name(kind), median(times), reference, median(references),
                      "time / reference", median(ratios),
                      limit > 0 ? Row::Goal::atMost : Row::Goal::none, limit});
    };
    bool isLarge = collectives[i].limit != nullptr;
    if (isLarge)
      add(
          "ranks", threads, "its reads and writes",
          [&] { return threads.run(firstLimit + i, message); }, 1.25);
    add(
        "processes", processes, "the same by threads",
        [&] { return threads.run(i, message); }, isLarge ? 1.15 : 0);
    if (tcp)
      add(
          "over TCP", *tcp, "Open MPI over TCP",
          [&] { return mpi->run(i, message); }, isLarge ? 0.6 : 0);
  }
  return message.empty();
}

bool zero::bench::runCollectiveRows(const Options &options,
                                    std::vector<Row> &rows,
                                    std::string &message) {
  return addRows(options, 2, rows, message) &&
         addRows(options, 4, rows, message);
}
