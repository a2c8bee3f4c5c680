//===- ExampleTest.cpp - Numbers that show a difference -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Example.h"

#include <gtest/gtest.h>

using namespace zero::prove;

namespace {

class ExampleTest : public testing::Test {
protected:
  Algebra algebra;
  Expr all = algebra.gradient(Epoch::all, /*over=*/0);
  Expr half = algebra.rational({1, 2});
  Expr two = algebra.integer(2);
};

// A factor shows in one backward pass, an epoch in two.
TEST_F(ExampleTest, IsAsSmallAsItCanBe) {
  EXPECT_EQ(
      findExample(algebra, algebra.multiply(half, all), all, 2),
      "counterexample: the gradient of 1 backward pass is 1 on rank 0, 10 on "
      "rank 1; rank 0 has 5.5, expected 11");
  EXPECT_EQ(
      findExample(algebra, algebra.multiply(half, all), all, 1),
      "counterexample: the gradient of 1 backward pass is 1; rank 0 has 0.5, "
      "expected 1");
  Expr last = algebra.gradient(Epoch::last, /*over=*/1);
  Expr former = algebra.gradient(Epoch::former, /*over=*/0);
  EXPECT_EQ(
      findExample(algebra, algebra.add(last, former), all, 3),
      "counterexample: gradients of 2 backward passes are 1 and 2 on rank 0, "
      "10 and 20 on rank 1, 0 on others; rank 0 has 13, expected 33");
}

// It says what else it takes, and where that makes no difference takes another.
TEST_F(ExampleTest, NamesWhatElseIsGiven) {
  Expr counter = algebra.base({BaseKind::old, "beta1_t"});
  EXPECT_EQ(
      findExample(algebra, algebra.multiply(counter, counter), counter, 1),
      "counterexample: counters are 0.5; rank 0 has 0.25, "
      "expected 0.5");
  Expr rate = algebra.base({BaseKind::input, "input 0"});
  Expr max = algebra.base({BaseKind::input, "input 2"});
  EXPECT_EQ(findExample(algebra, rate, max, 1),
            "counterexample: input 0 is 0.5; input 2 is 0.125; rank 0 has 0.5, "
            "expected 0.125");
  Expr moment = algebra.state("m");
  EXPECT_EQ(findExample(algebra, algebra.multiply(half, moment), moment, 1),
            "counterexample: old parameters are 1, other state 0.25; rank 0 "
            "has 0.125, expected 0.25");
}

// A division by 0 does not show elsewhere.
TEST_F(ExampleTest, HasWhatIsZeroLast) {
  Expr rate = algebra.base({BaseKind::input, "input 0"});
  Expr once = algebra.multiply(rate, algebra.divide(rate, rate));
  EXPECT_EQ(findExample(algebra, once, rate, 1),
            "counterexample: input 0 is 0; rank 0 has nan, "
            "expected 0");
  EXPECT_EQ(findExample(algebra, algebra.multiply(once, two), rate, 1),
            "counterexample: input 0 is 0.5; rank 0 has 1, "
            "expected 0.5");
  Expr moment = algebra.state("m");
  EXPECT_EQ(
      findExample(algebra, algebra.overItself(moment), algebra.integer(1), 1),
      "counterexample: old parameters are 1, other state 0; rank 0 has "
      "nan, expected 1");
}

TEST_F(ExampleTest, HasNanWhereNobodyWrote) {
  EXPECT_EQ(
      findExample(algebra, algebra.undefined("memory"), all, 2),
      "counterexample: the gradient of 1 backward pass is 1 on rank 0, 10 on "
      "rank 1; what is not known is nan; rank 0 has nan, expected 11");
  EXPECT_EQ(findExample(algebra, all, all, 2), "");
}

} // namespace
