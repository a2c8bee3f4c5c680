//===- CacheTest.cpp - Processes that compile the same step ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/Cache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace mlir;
using namespace zero;
using Clock = std::chrono::steady_clock;

namespace {

class CacheTest : public testing::Test {
protected:
  CacheTest() {
    llvm::SmallString<128> folder;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("zero-cache", folder));
    settings.cache.text = folder.str().str();
  }
  ~CacheTest() override {
    llvm::sys::fs::remove_directories(settings.cache.text);
  }

  CompileSettings settings;
  std::string message;
};

TEST_F(CacheTest, ReadsWhatWasWritten) {
  CompileOutput output{"name", "step", std::string("a\0b", 3), "", "{}"}, found;
  CacheEntry entry(settings, "step", "");
  EXPECT_FALSE(entry.read(found));
  ASSERT_TRUE(succeeded(entry.write(output, message))) << message;
  ASSERT_TRUE(CacheEntry(settings, "step", "").read(found));
  EXPECT_TRUE(found.isCached);
  EXPECT_EQ(found.name, output.name);
  EXPECT_EQ(found.step, output.step);
  EXPECT_EQ(found.library, output.library);
  EXPECT_EQ(found.header, output.header);
  EXPECT_EQ(found.plan, output.plan);
}

TEST_F(CacheTest, TextsAreToldApart) {
  CompileOutput found;
  ASSERT_TRUE(succeeded(
      CacheEntry(settings, "ab", "c").write({"", "", "", "", ""}, message)));
  EXPECT_TRUE(CacheEntry(settings, "ab", "c").read(found));
  EXPECT_FALSE(CacheEntry(settings, "a", "bc").read(found));
  EXPECT_FALSE(CacheEntry(settings, "abc", "").read(found));
}

TEST_F(CacheTest, WaitsForTheLockUpToTheLimit) {
  using namespace std::chrono_literals;
  CacheEntry first(settings, "step", ""), second(settings, "step", ""),
      other(settings, "other", "");
  ASSERT_TRUE(succeeded(first.lock(0ms, message))) << message;
  auto start = Clock::now();
  EXPECT_TRUE(succeeded(second.lock(100ms, message))) << message;
  EXPECT_GE(Clock::now() - start, 100ms);
  start = Clock::now();
  EXPECT_TRUE(succeeded(other.lock(60s, message))) << message;
  EXPECT_LT(Clock::now() - start, 30s);
}

} // namespace
