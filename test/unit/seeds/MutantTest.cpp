//===- MutantTest.cpp - Lowered steps with the reported mistakes ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lowered step has no placements left in its types. These mutants verify,
// and the interpreter gives the reports' wrong numbers for them where the
// logical step gives the right ones. Steps are interpreted here, and not
// compiled, for the damage is in what both read. A proof that a program
// computes its logical step must reject each one.
//
//===----------------------------------------------------------------------===//

#include "Steps.h"

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;
using namespace zero;
using namespace zero::test;

namespace {

zrt::HandlerOp getHandler(ModuleOp module, StringRef name) {
  zrt::HandlerOp found;
  module.walk([&](zrt::HandlerOp handler) {
    if (handler.getSymName() == name)
      found = handler;
  });
  return found;
}

/// The ops of one kind in a handler, or in those of all buckets that have one
/// of this name; there must be some.
template <typename Op> SmallVector<Op> getOps(ModuleOp module, StringRef name) {
  SmallVector<Op> ops;
  module.walk([&](zrt::HandlerOp handler) {
    if (handler.getSymName() == name ||
        handler.getSymName().ends_with(("." + name).str()))
      llvm::append_range(ops, handler.getBody().getOps<Op>());
  });
  EXPECT_FALSE(ops.empty()) << "nothing to mutate in @" << name.str();
  return ops;
}

class Mutant : public testing::Test {
protected:
  /// Applies |window| once to the lowered step as |mutate| leaves it, and once
  /// to the logical step. SGD with rate -1 from 0 makes a parameter the
  /// gradient that the update saw.
  void run(int stage, Step::Mutation mutate, const Window &window) {
    Way scheduled{How::scheduled, stage};
    scheduled.bucketBytes = 64; // a bucket for each parameter
    scheduled.pipeline = "until=lowered";
    wrong = std::make_unique<Step>(text, scheduled, [&](ModuleOp module) {
      mutate(module);
      EXPECT_TRUE(succeeded(verify(module)));
    });
    right = std::make_unique<Step>(text, Way{How::logical});
    auto wrongResult = wrong->apply(-1.0, window);
    auto rightResult = right->apply(-1.0, window);
    ASSERT_TRUE(succeeded(wrongResult));
    ASSERT_TRUE(succeeded(rightResult));
    wrongNorm = wrongResult->values[0];
    rightNorm = rightResult->values[0];
  }

  StepText text;
  std::unique_ptr<Step> wrong, right;
  double wrongNorm = 0, rightNorm = 0;
};

using Values = std::vector<double>;

/// Two ranks, four backward passes, g = 2^(k + 4r).
Window powersOfTwo() {
  Window window(2);
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t k = 0; k < 4; ++k)
      window[r].push_back({{"w", {std::ldexp(1.0, k + 4 * r)}}});
  return window;
}

} // namespace

// #7985: the buffers are reduced before the last of two backward passes comes
// in. g(m, r) = e_(2m+r); the mean is 1/4 everywhere, of norm 1/2.
TEST_F(Mutant, AddsTheLastBackwardBehindTheReduction) {
  text.parameters = {{"w", 4, ""}};
  text.weight = "accumulation : -1, dp : -1";
  Window window(2);
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t m = 0; m < 2; ++m) {
      Values oneHot(4, 0.0);
      oneHot[2 * m + r] = 1;
      window[r].push_back({{"w", oneHot}});
    }
  auto reduceEarly = [](ModuleOp module) {
    Block &begin = getHandler(module, "begin_next").getBody().front();
    for (auto op : getOps<zrt::AllReduceOp>(module, "reduce")) {
      op->moveBefore(&begin, begin.end());
    }
  };
  run(/*stage=*/0, reduceEarly, window);
  EXPECT_EQ(right->get("w"), Values(4, 0.25));
  EXPECT_EQ(rightNorm, 0.5);
  // As in the report, the ranks end with different values. There the leak was
  // twice as large: here the mean over ranks is taken behind the addition.
  EXPECT_EQ(wrong->getOn(0, "w"), (Values{0.25, 0.25, 0.25, 0}));
  EXPECT_EQ(wrong->getOn(1, "w"), (Values{0.25, 0.25, 0, 0.25}));
  EXPECT_DOUBLE_EQ(wrongNorm, std::sqrt(3.0 / 16));
}

// #7981: a later backward pass is stored over what the earlier ones left.
TEST_F(Mutant, StoresABackwardOverTheSum) {
  auto store = [](ModuleOp module) {
    for (auto op : getOps<zrt::PackOp>(module, "arrive_next")) {
      EXPECT_TRUE(op.getAccumulate());
      op.setAccumulate(false);
    }
  };
  for (int stage : {0, 1}) {
    run(stage, store, powersOfTwo());
    EXPECT_EQ(rightNorm, 127.5);
    EXPECT_EQ(wrongNorm, 68);
    EXPECT_EQ(wrong->get("w"), Values{68});
  }
}

// The same where each backward pass is reduced.
TEST_F(Mutant, ScattersABackwardOverTheSum) {
  auto store = [](ModuleOp module) {
    for (auto op : getOps<zrt::ReduceScatterAddOp>(module, "close_next")) {
      OpBuilder builder(op);
      builder.create<zrt::ReduceScatterOp>(op.getLoc(), TypeRange(),
                                           ValueRange(), op->getAttrs());
      op->erase();
    }
  };
  run(/*stage=*/2, store, powersOfTwo());
  EXPECT_EQ(rightNorm, 127.5);
  EXPECT_EQ(wrongNorm, 68);
  EXPECT_EQ(wrong->get("w"), Values{68});
}

// A gradient that never arrives is not zero by itself: memory is read that
// nobody wrote.
TEST_F(Mutant, LeavesWhatDidNotArrive) {
  text.parameters = {{"w", 1, ""}, {"expert", 2, "optional"}};
  auto open = [](ModuleOp module) {
    for (auto op : getOps<zrt::FillMissingOp>(module, "close_first"))
      op->erase();
  };
  for (int stage : {0, 1, 2}) {
    run(stage, open, {{{{"w", {3}}}}, {{{"w", {5}}}}});
    EXPECT_EQ(rightNorm, 4);
    EXPECT_TRUE(std::isnan(wrongNorm)) << stage;
  }
}

// The same in a later backward pass, where each is reduced.
TEST_F(Mutant, LeavesWhatDidNotArriveLater) {
  text.parameters = {{"w", 1, "optional"}};
  auto open = [](ModuleOp module) {
    for (auto op : getOps<zrt::FillMissingOp>(module, "close_next"))
      op->erase();
  };
  run(/*stage=*/2, open, Window(2, {{{"w", {2}}}, {}}));
  EXPECT_EQ(rightNorm, 2);
  EXPECT_TRUE(std::isnan(wrongNorm));
}

namespace {

/// #7847: three groups of gradients whose norm is 85.
class MutantNorm : public Mutant {
protected:
  MutantNorm() { text.parameters = {{"a", 1, ""}, {"b", 2, ""}, {"c", 3, ""}}; }
  const Window window =
      Window(2, {{{"a", {1.0}}, {"b", {2.0, 2.0}}, {"c", {4.0, 12.0, 84.0}}}});
};

} // namespace

// The sums are complete, or will be, and are summed over the ranks once more.
TEST_F(MutantNorm, IsSummedAgain) {
  auto again = [](ModuleOp module) {
    zrt::LaunchOp last;
    for (auto op : getOps<zrt::LaunchOp>(module, "measure"))
      if (op.getSumAttr())
        last = op;
    OpBuilder builder(last->getContext());
    builder.setInsertionPointAfter(last);
    builder.create<zrt::AllReduceScalarsOp>(last.getLoc(), *last.getSum(),
                                            builder.getStrArrayAttr({"dp"}));
  };
  for (int stage : {0, 1, 2}) {
    run(stage, again, window);
    EXPECT_EQ(rightNorm, 85);
    EXPECT_NEAR(wrongNorm, 120.2081528, 1e-7) << stage;
  }
}

// The norm of one group goes for that of all.
TEST_F(MutantNorm, IsThatOfOneGroup) {
  // Buckets are in the order of a backward pass: @c, @b, @a.
  const double squares[] = {16 + 144 + 84 * 84, 8, 1};
  for (int stage : {0, 1, 2})
    for (uint64_t group : {0, 1, 2}) {
      auto drop = [&](ModuleOp module) {
        for (auto op : getOps<zrt::LaunchOp>(module, "measure"))
          if (op.getSumAttr() && op.getSumIndex() != group)
            op->erase();
      };
      run(stage, drop, window);
      EXPECT_EQ(rightNorm, 85);
      EXPECT_DOUBLE_EQ(wrongNorm, std::sqrt(squares[group])) << stage;
    }
}

// Each rank sums over more than the slice it owns: of the mutants here the only
// one that a verifier sees, for the buffer's type says that it is a slice.
TEST_F(MutantNorm, OverForeignSlicesDoesNotVerify) {
  auto widen = [](ModuleOp module) {
    for (auto op : getOps<zrt::LaunchOp>(module, "measure")) {
      std::string message;
      ScopedDiagnosticHandler handler(
          module.getContext(),
          [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
      ArrayAttr own = op.getOwnAttr();
      op.removeOwnAttr();
      EXPECT_TRUE(failed(verify(module)));
      EXPECT_NE(message.find("is sharded and the launch is not 'own'"),
                std::string::npos)
          << message;
      op.setOwnAttr(own);
    }
  };
  run(/*stage=*/1, widen, window);
  EXPECT_EQ(wrongNorm, rightNorm);
}
