//===- ShardedTest.cpp - The sharded phase against the logical one --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InterpreterFixture.h"

#include "dialect/interpret/Ranks.h"

#include "mlir/Parser/Parser.h"

#include <random>

using namespace zero;
using namespace zero::test;

namespace {

/// Two parameters in bf16 with master weights, laid out with pads.
std::string getTables() {
  return std::string(R"(
zero.mesh @m <["dp" = 2]>
zero.parameter @w : 5x7xbf16
zero.parameter @b : 7xbf16
zero.group @all [@w, @b]
)") + getOptimizer("adamw");
}

const char *const kLogical = R"(
zero.step @s on @m normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
  %g:2 = zero.micro_batches in f32 {
    %d:2 = zero.backward(@w, @b) prescaled(accumulation : -1)
        : !zero.value<5x7xbf16, partial = [dp, micro], scaled = [dp : 1]>, !zero.value<7xbf16, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d#0, %d#1 : !zero.value<5x7xbf16, partial = [dp, micro], scaled = [dp : 1]>, !zero.value<7xbf16, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r:2 = zero.reduce %g#0, %g#1 : !zero.value<5x7xf32, partial = [dp], scaled = [dp : 1]>, !zero.value<7xf32, partial = [dp], scaled = [dp : 1]>
  %norm = zero.norm %r#0, %r#1 : !zero.value<5x7xf32>, !zero.value<7xf32>
  %c:2 = zero.clip %r#0, %r#1 by %norm max 1.0 : !zero.value<5x7xf32>, !zero.value<7xf32> by !zero.value<f64>
  zero.update @all with @adamw(%c#0, %c#1) hyper(lr = %lr, wd = 0.125) : (!zero.value<5x7xf32>, !zero.value<7xf32>), (!zero.value<f64>)
  zero.return [norm] %norm : !zero.value<f64>
})";

/// What comes before the optimizer: |stage| 2 reduces in the loop.
std::string getSharded(int stage) {
  std::string text = R"(
zero.bucket @b0 : 128xf32 arrives bf16 [@b, @w] offsets [0, 32] extents [32, 96]
zero.step @s on @m normalize(accumulation : -1, dp : -1) (%lr: !zero.value<f64>) {
)";
  if (stage == 2)
    text += R"(
  %r = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled(accumulation : -1) : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
    %s = zero.reduce_scatter %d over [dp] : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %s : !zero.value<128xf32, sharded = [dp], partial = [micro], scaled = [dp : 1]>
  })";
  else
    text += R"(
  %g = zero.micro_batches in f32 {
    %d = zero.backward(@b0) prescaled(accumulation : -1) : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
    zero.yield %d : !zero.value<128xf32, partial = [dp, micro], scaled = [dp : 1]>
  }
  %r = zero.reduce_scatter %g over [dp] : !zero.value<128xf32, partial = [dp], scaled = [dp : 1]>)";
  return text + R"(
  %f = zero.factor (dp : -1)
  %sum = zero.sum_squares %r : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]>
  %a, %a2, %missing = zero.arrival_count over [dp]
  %part = zero.stack %sum, %a, %a2, %missing : !zero.value<f64, partial = [dp], scaled = [dp : 2]>, !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>, !zero.value<f64, partial = [dp]>
  %all = zero.all_reduce %part over [dp] : !zero.value<4xf64, partial = [dp]>
  %t:4 = zero.unstack %all [#zero.scale<dp : 2>, #zero.scale<>, #zero.scale<>, #zero.scale<>] : !zero.value<4xf64>
  %v = zero.outcome(%t#0) missing %t#3 backwards %t#1 squared %t#2 ranks 2 : !zero.value<f64, scaled = [dp : 2]>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>
  %wd = zero.constant 0.125
  %b1 = zero.constant 0.9
  %b2 = zero.constant 0.999
  %eps = zero.constant 1.0e-8
  %p:8 = zero.prepare @all with @adamw(%lr, %wd, %b1, %b2, %eps) when %v yields 8 : (!zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>), !zero.value<f64>
  %raw = zero.sqrt %t#0 : !zero.value<f64, scaled = [dp : 2]>
  %norm = zero.scale %raw by %f : !zero.value<f64, scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
  %c = zero.clip_coefficient %norm max 1.0 : !zero.value<f64>
  %fc = zero.scale %f by %c : !zero.value<f64, scaled = [dp : -1]> by !zero.value<f64>
  %u = zero.scale %r by %fc : !zero.value<128xf32, sharded = [dp], scaled = [dp : 1]> by !zero.value<f64, scaled = [dp : -1]>
  %slice = zero.update_bucket @b0 with @adamw(%u) when %v rows(%p#0, %p#1, %p#2, %p#3, %p#4, %p#5, %p#6, %p#7) row_of [0, 0] : bf16, !zero.value<128xf32, sharded = [dp]>, !zero.value<f64>, (!zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>, !zero.value<f64>)
  %whole = zero.all_gather %slice over [dp] : !zero.value<128xbf16, sharded = [dp]>
  zero.assign @b0, %whole : !zero.value<128xbf16>
  zero.return [norm] %norm : !zero.value<f64>
})";
}

/// Small integers, so that every sum is exact.
std::vector<RankInputs> drawIntegers(std::mt19937 &random, int backwards) {
  std::uniform_int_distribution<int> integer(-8, 8);
  std::vector<RankInputs> ranks(2);
  for (RankInputs &rank : ranks) {
    rank.inputs = {1e-2};
    for (int b = 0; b < backwards; ++b) {
      auto &backward = rank.backwards.emplace_back();
      for (auto [name, size] : {std::pair("w", 35), std::pair("b", 7)})
        for (int i = 0; i < size; ++i)
          backward[name].push_back(integer(random));
    }
  }
  return ranks;
}

void expectSame(Runner &a, Runner &b) {
  for (const char *name : {"w", "b"}) {
    for (int rank : {0, 1})
      EXPECT_EQ(a.parameter(name, rank), b.parameter(name, rank));
    for (const char *role : {"master", "m", "v"})
      EXPECT_EQ(a.state(role, name), b.state(role, name)) << role;
  }
  EXPECT_EQ(a.state("all.beta1_t", ""), b.state("all.beta1_t", ""));
}

class Sharded : public testing::TestWithParam<int> {};

} // namespace

// Reduce-scatter, slices of state and all-gather give the bits of a step
// without owners; a parameter is cut by the border between the ranks.
TEST_P(Sharded, EqualsLogicalForExactSums) {
  Runner logical(getTables() + kLogical);
  Runner sharded(getTables() + getSharded(GetParam()));
  std::mt19937 random(11);
  for (const char *name : {"w", "b"}) {
    Gradient initial(name[0] == 'w' ? 35 : 7, 0.3);
    ASSERT_TRUE(mlir::succeeded(logical->bindParameter(name, initial)));
    ASSERT_TRUE(mlir::succeeded(sharded->bindParameter(name, initial)));
  }
  expectSame(logical, sharded);
  for (int backwards : {1, 4, 2, 1}) {
    std::vector<RankInputs> inputs = drawIntegers(random, backwards);
    StepResult a = logical.applyInputs(inputs);
    StepResult b = sharded.applyInputs(inputs);
    EXPECT_EQ(a.outcome, Outcome::applied);
    EXPECT_EQ(b.outcome, Outcome::applied);
    EXPECT_EQ(a.values, b.values);
    expectSame(logical, sharded);
    EXPECT_NE(sharded.state("m", "w"), Gradient(35, 0.0));
  }
}

TEST_P(Sharded, RefusalsAreThoseOfTheLogicalStep) {
  Runner logical(getTables() + kLogical);
  Runner sharded(getTables() + getSharded(GetParam()));
  std::mt19937 random(12);
  std::vector<RankInputs> inputs = drawIntegers(random, 2);
  inputs[1].backwards[1].erase("b");
  EXPECT_EQ(logical.applyInputs(inputs).message,
            sharded.applyInputs(inputs).message);
  inputs[0].backwards.pop_back();
  EXPECT_EQ(sharded.applyInputs(inputs).outcome,
            Outcome::refused_unequal_backwards);
  EXPECT_EQ(logical.applyInputs(inputs).message,
            sharded.applyInputs(inputs).message);
  expectSame(logical, sharded);
  EXPECT_EQ(sharded.parameter("w", 1), Gradient(35, 0.0));
}

INSTANTIATE_TEST_SUITE_P(Stages, Sharded, testing::Values(1, 2));

// Ranks are row-major; a group differs over the named axes only.
TEST(Ranks, GroupsAreInOrder) {
  mlir::MLIRContext context;
  context.loadDialect<ZeroDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"(zero.mesh @m <["a" = 2, "b" = 3]>)", &context);
  Ranks ranks(*module->getOps<MeshOp>().begin());
  auto axis = [&](const char *name) {
    return mlir::StringAttr::get(&context, name);
  };
  using Groups = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(ranks.getGroups({axis("b")}), (Groups{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(ranks.getGroups({axis("a")}), (Groups{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(ranks.getGroups({axis("a"), axis("b")}),
            (Groups{{0, 1, 2, 3, 4, 5}}));
}
