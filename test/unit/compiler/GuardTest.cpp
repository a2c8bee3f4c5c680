//===- GuardTest.cpp - What LLVM cannot go on from ends no process --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/Guard.h"

#include "llvm/Support/ErrorHandling.h"

#include <gtest/gtest.h>

#include <clocale>
#include <csignal>
#include <langinfo.h>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

using namespace zero;

namespace {

/// LLVM is not used again behind an error, so each test is a process.
void runAlone(const std::function<void()> &test) {
  EXPECT_EXIT(
      {
        test();
        // No test is left: what has failed was printed.
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Guard, RunsWorkInAnotherThread) {
  std::string message;
  pthread_t self = pthread_self(), other = self;
  sigset_t blocked;
  EXPECT_EQ(runGuarded(
                [&] {
                  other = pthread_self();
                  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
                },
                message),
            GuardedEnd::done);
  EXPECT_EQ(message, "");
  EXPECT_FALSE(pthread_equal(self, other));
  EXPECT_TRUE(sigismember(&blocked, SIGXFSZ));
  EXPECT_TRUE(sigismember(&blocked, SIGINT));
  EXPECT_FALSE(sigismember(&blocked, SIGSEGV));
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGXFSZ));
}

TEST(Guard, WorkHasItsOwnLocale) {
  std::string message;
  locale_t locale = LC_GLOBAL_LOCALE;
  std::string name;
  EXPECT_EQ(runGuarded(
                [&] {
                  locale = uselocale(nullptr);
                  name = nl_langinfo_l(RADIXCHAR, locale);
                },
                message),
            GuardedEnd::done);
  EXPECT_NE(locale, LC_GLOBAL_LOCALE);
  EXPECT_EQ(name, ".");
  EXPECT_EQ(uselocale(nullptr), LC_GLOBAL_LOCALE);
}

TEST(Guard, FatalErrorStopsTheThread) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  runAlone([] {
    std::string message;
    EXPECT_EQ(runGuarded([] { llvm::report_fatal_error("no such register"); },
                         message),
              GuardedEnd::fatal);
    EXPECT_EQ(message, "LLVM cannot go on in this process: no such register");
    // Behind it nothing runs.
    bool hasRun = false;
    message.clear();
    EXPECT_EQ(runGuarded([&] { hasRun = true; }, message), GuardedEnd::fatal);
    EXPECT_EQ(message, "LLVM cannot go on in this process: no such register");
    EXPECT_FALSE(hasRun);
  });
}

TEST(Guard, FatalErrorEndsAChild) {
  std::string message;
  int status = 0;
  EXPECT_EQ(runGuarded(
                [&] {
                  pid_t child = ::fork();
                  if (child == 0)
                    llvm::report_fatal_error("no such register");
                  ::waitpid(child, &status, 0);
                },
                message),
            GuardedEnd::done);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(Guard, AllocationThatFailsIsNoMemory) {
  std::string message;
  // What operator new calls. This code is built without exceptions, as LLVM is.
  EXPECT_EQ(runGuarded([] { std::__throw_bad_alloc(); }, message),
            GuardedEnd::noMemory);
  EXPECT_EQ(message, "out of memory");
  EXPECT_EQ(runGuarded([] {}, message), GuardedEnd::done);
}

} // namespace
