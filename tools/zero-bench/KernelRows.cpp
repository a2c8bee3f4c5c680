//===- KernelRows.cpp - Generated kernels against plain loops -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Bench.h"
#include "tools/zero-bench/Programs.h"
#include "tools/zero-bench/References.h"

#include "dialect/zrt/ZrtDialect.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace zero;
using namespace zero::bench;

namespace {
/// The arrays of an AdamW update.
struct State {
  explicit State(int64_t n)
      : wide(n), p(n), m(n), v(n), narrow(n), out(n), partials(n / 4096 + 1) {}

  /// Normal numbers of both signs, and moments as they would be.
  void reset() {
    uint32_t random = 1;
    for (int64_t i = 0; i < p.size(); ++i) {
      random = random * 1664525 + 1013904223;
      float x = float(int32_t(random)) * 0x1p-31f;
      wide[i] = p[i] = x;
      m[i] = 0.1f * x;
      v[i] = x * x + 1e-8f;
      uint32_t word;
      std::memcpy(&word, &x, sizeof(word));
      narrow[i] = uint16_t(word >> 16);
    }
  }
  /// Rows of an embedding that is not used: no gradient, and moments that have
  /// decayed.
  void resetToSubnormal() {
    for (int64_t i = 0; i < p.size(); ++i) {
      wide[i] = 0;
      m[i] = v[i] = 1e-40f;
    }
  }

  Pages<float> wide, p, m, v;
  Pages<uint16_t> narrow, out;
  Pages<double> partials;
};

/// Kernels of one program, linked at several places.
struct Placements {
  static constexpr int kCount = 4;
  KernelLibrary libraries[kCount];

  bool load(MLIRContext &context, StringRef gradient, StringRef kernel,
            std::string &message) {
    OwningOpRef<ModuleOp> module =
        lowerStep(context, getStepText({1}, gradient), /*stage=*/0);
    if (!module)
      return false;
    auto program = *module->getOps<zrt::ProgramOp>().begin();
    for (int i = 0; i < kCount; ++i)
      if (!libraries[i].load(program, kernel, i, message))
        return false;
    name = kernel.str();
    return true;
  }
  zero_rt_kernel_fn get(int round) const {
    return reinterpret_cast<zero_rt_kernel_fn>(
        libraries[round % kCount].find(name));
  }
  std::string name;
};
} // namespace

/// outcome, factor, then what prepare of AdamW yields.
static const double kScalars[] = {0,   1,     1 - 1e-4, -1e-3, 0.9,
                                  0.1, 0.999, 1e-3,     1,     1e-8};

static void addUpdateRow(const Options &options, State &state,
                         const Placements &kernels, bool wide,
                         std::vector<Row> &rows) {
  int64_t n = options.elements;
  void *gradient =
      wide ? static_cast<void *>(state.wide.data()) : state.narrow.data();
  void *operands[] = {gradient, state.p.data(), state.m.data(), state.v.data(),
                      state.out.data()};
  state.reset();
  Pair pair = interleave(
      options.rounds, [] {},
      [&](int round) { kernels.get(round)(operands, kScalars, 0, n, nullptr); },
      [&] {
        if (wide)
          streamsOfAdamW(state.wide.data(), state.p.data(), state.m.data(),
                         state.v.data(), state.out.data(), n);
        else
          streamsOfAdamW(state.narrow.data(), state.p.data(), state.m.data(),
                         state.v.data(), state.out.data(), n);
      });
  Row row;
  row.name = wide ? "adamw, f32 gradient" : "adamw, bf16 gradient";
  row.timeMs = pair.timeMs;
  row.reference = "loop with its streams";
  row.referenceMs = pair.referenceMs;
  row.unit = "time / reference";
  row.value = pair.ratio;
  row.goal = Row::Goal::atMost;
  row.limit = 1.02;
  rows.push_back(row);
}

/// How far apart two runs of the same are.
static void addSameRow(const Options &options, State &state,
                       const Placements &kernels, std::vector<Row> &rows) {
  void *operands[] = {state.narrow.data(), state.p.data(), state.m.data(),
                      state.v.data(), state.out.data()};
  auto run = [&](int round) {
    kernels.get(round)(operands, kScalars, 0, options.elements, nullptr);
  };
  int other = 0;
  state.reset();
  Pair pair = interleave(options.rounds, [] {}, run, [&] { run(++other + 1); });
  rows.push_back({"adamw, bf16 gradient (A/A)", pair.timeMs, "itself elsewhere",
                  pair.referenceMs, "time / reference", pair.ratio});
}

static void addSubnormalRow(const Options &options, State &state,
                            const Placements &kernels, std::vector<Row> &rows) {
  void *operands[] = {state.wide.data(), state.p.data(), state.m.data(),
                      state.v.data(), state.out.data()};
  auto run = [&](int round) {
    kernels.get(round)(operands, kScalars, 0, options.elements, nullptr);
  };
  std::vector<double> normal, subnormal;
  for (int round = 0; round < options.rounds; ++round) {
    state.reset();
    normal.push_back(measure([&] { run(round); }));
    state.resetToSubnormal();
    subnormal.push_back(measure([&] { run(round); }));
  }
  rows.push_back({"adamw, subnormal moments", median(subnormal),
                  "the same, normal numbers", median(normal),
                  "time / reference", median(subnormal) / median(normal)});
}

static void addNormRow(const Options &options, State &state,
                       const Placements &kernels, std::vector<Row> &rows) {
  int64_t n = options.elements;
  void *operands[] = {state.wide.data()};
  state.reset();
  volatile uint64_t sink = 0;
  Pair pair = interleave(
      options.rounds, [] {},
      [&](int round) {
        kernels.get(round)(operands, nullptr, 0, n, state.partials.data());
      },
      [&] { sink = sink + plainRead(state.wide.data(), n); });
  double sum = 0;
  for (int64_t block = 0; block * 4096 < n; ++block)
    sum += state.partials[block];
  // The products are exact in f64; long double adds them 2^11 times finer.
  long double exact = 0;
  for (int64_t i = 0; i < n; ++i)
    exact += (long double)(double(state.wide[i]) * double(state.wide[i]));
  Row row;
  row.name = "sum of squares, f32";
  row.timeMs = pair.timeMs;
  row.reference = "plain read";
  row.referenceMs = pair.referenceMs;
  row.unit = "reference / time";
  row.value = 1 / pair.ratio;
  row.goal = Row::Goal::atLeast;
  row.limit = 0.93;
  rows.push_back(row);
  row = {};
  row.name = "norm, relative error";
  row.reference = "long double sum";
  row.unit = "error";
  row.value = double(std::fabs(std::sqrt((long double)sum) - std::sqrt(exact)) /
                     std::sqrt(exact));
  row.goal = Row::Goal::atMost;
  row.limit = 1e-12;
  rows.push_back(row);
}

bool zero::bench::runKernelRows(const Options &options, std::vector<Row> &rows,
                                std::string &message) {
  auto context = createContext();
  Placements narrow, wide, squares;
  if (!narrow.load(*context, "bf16", "update.adamw.bf16.bf16", message) ||
      !wide.load(*context, "f32", "update.adamw.f32.bf16", message) ||
      !squares.load(*context, "f32", "sum_squares.f32", message))
    return false;
  State state(options.elements);
  addUpdateRow(options, state, narrow, /*wide=*/false, rows);
  addUpdateRow(options, state, wide, /*wide=*/true, rows);
  addSameRow(options, state, narrow, rows);
  addSubnormalRow(options, state, wide, rows);
  addNormRow(options, state, squares, rows);
  return true;
}
