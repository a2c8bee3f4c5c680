//===- NestingTest.cpp - How deeply brackets of a text are nested ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Nesting.h"

#include <gtest/gtest.h>

using namespace zero;

namespace {

std::string repeat(const char *text, int64_t count) {
  std::string all;
  for (int64_t i = 0; i < count; ++i)
    all += text;
  return all;
}

TEST(Nesting, CountsAllBrackets) {
  for (const char *bracket : {"[", "{", "(", "<"}) {
    EXPECT_FALSE(isNestedDeeply(repeat(bracket, kDeepestText)));
    EXPECT_TRUE(isNestedDeeply(repeat(bracket, kDeepestText + 1)));
  }
  EXPECT_TRUE(isNestedDeeply(repeat("[{(<", kDeepestText / 4) + "["));
}

TEST(Nesting, BracketsThatCloseDoNotCount) {
  EXPECT_FALSE(isNestedDeeply(repeat("[]{}()<>", 10 * kDeepestText)));
  EXPECT_FALSE(isNestedDeeply(repeat("]", 10 * kDeepestText)));
  // What closes first opens nothing, and an arrow closes nothing.
  EXPECT_TRUE(isNestedDeeply(repeat("]", 10) + repeat("[", kDeepestText + 1)));
  EXPECT_TRUE(isNestedDeeply(repeat("(->", kDeepestText + 1)));
}

TEST(Nesting, StringsAndCommentsDoNotCount) {
  std::string deep = repeat("[", kDeepestText + 1);
  EXPECT_FALSE(isNestedDeeply("\"" + deep + "\""));
  EXPECT_FALSE(isNestedDeeply("\"\\\"" + deep + "\""));
  EXPECT_FALSE(isNestedDeeply("// " + deep + "\n"));
  // They end: a string with its quote or its line, a comment with its line.
  EXPECT_TRUE(isNestedDeeply("\"\"" + deep));
  EXPECT_TRUE(isNestedDeeply("\"\\\\\"" + deep));
  EXPECT_TRUE(isNestedDeeply("\"\n" + deep));
  EXPECT_TRUE(isNestedDeeply("// \"\n" + deep));
  EXPECT_TRUE(isNestedDeeply("/ " + deep));
}

} // namespace
