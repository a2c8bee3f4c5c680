//===- ChildTest.cpp - A function in a process of its own -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/Child.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

TEST(Child, PassesOnItsText) {
  std::string text = "left from before", large(300'000, 'x');
  EXPECT_TRUE(succeeded(zero::runInChild([] { return ""; }, 10s, text)));
  EXPECT_EQ(text, "");
  // More than a pipe holds.
  EXPECT_TRUE(succeeded(zero::runInChild([&] { return large; }, 10s, text)));
  EXPECT_EQ(text, large);
}

TEST(Child, ChangesNothingHere) {
  std::string text;
  int number = 1;
  EXPECT_TRUE(succeeded(zero::runInChild(
      [&] {
        number = 2;
        return std::to_string(number);
      },
      10s, text)));
  EXPECT_EQ(text, "2");
  EXPECT_EQ(number, 1);
}

TEST(Child, SaysHowItEnded) {
  std::string text;
  EXPECT_TRUE(failed(zero::runInChild(
      [] {
        std::raise(SIGSEGV);
        return "";
      },
      10s, text)));
  EXPECT_EQ(text, "ended by the signal 'Segmentation fault'");
  EXPECT_TRUE(
      failed(zero::runInChild([]() -> std::string { ::_exit(7); }, 10s, text)));
  EXPECT_EQ(text, "ended with exit status 7");
}

// Then nobody knows whether a child without a text had an error.
TEST(Child, CannotBeWaitedForWhereSignalsAreIgnored) {
  std::string text;
  auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_TRUE(failed(zero::runInChild([] { return ""; }, 10s, text)));
  std::signal(SIGCHLD, before);
  EXPECT_EQ(text, "cannot be waited for: No child processes; do not ignore "
                  "SIGCHLD");
}

TEST(Child, EndsWithItsTime) {
  std::string text;
  EXPECT_TRUE(failed(zero::runInChild(
      [] {
        while (true)
          std::this_thread::sleep_for(1s);
        return "";
      },
      50ms, text)));
  EXPECT_EQ(text, "did not end within 50 ms");
}

TEST(Child, RunsBesideItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  char answer = 0;
  zero::Child child([&] { // it waits for what is written below
    return std::string(::read(ends[0], &answer, 1) == 1 ? 1 : 0, answer);
  });
  EXPECT_EQ(::write(ends[1], "y", 1), 1);
  std::string text;
  EXPECT_TRUE(succeeded(child.wait(10s, text)));
  EXPECT_EQ(text, "y");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Child, EndsWithItsObject) {
  pid_t left = 0;
  {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    zero::Child child([&]() -> std::string {
      pid_t self = ::getpid();
      EXPECT_EQ(::write(ends[1], &self, sizeof(self)), ssize_t(sizeof(self)));
      while (true)
        std::this_thread::sleep_for(1s);
    });
    ASSERT_EQ(::read(ends[0], &left, sizeof(left)), ssize_t(sizeof(left)));
    ::close(ends[0]);
    ::close(ends[1]);
  }
  EXPECT_EQ(::kill(left, 0), -1); // reaped, too
}

} // namespace
