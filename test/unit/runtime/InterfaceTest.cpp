//===- ForwarderTest.cpp - NAME_<call> is the row of the table ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function that a library exports reads its row of the table behind the
// first word of its first argument, and passes on what it was given. Here the
// table is one of the test's own, without any runtime behind it.
//
//===----------------------------------------------------------------------===//

#include "StepLibrary.h"

#include "llvm/ADT/bit.h"

#include <gtest/gtest.h>

using namespace zero;
using namespace zero::test;

namespace {
/// Operands as bits.
using Words = std::vector<uint64_t>;

template <typename T> uint64_t toWord(T value) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<uintptr_t>(value);
  else
    return static_cast<uint64_t>(value);
}

/// A value for operand |i| that no other operand has.
template <typename T> T makeValue(size_t i) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<T>(0x1000 + 16 * i);
  else
    return static_cast<T>(3 + i);
}

const char *calledRow = nullptr;
Words calledWith;

/// What a row answers; none is a status that generated code makes up.
constexpr int32_t kAnswer = 77;

template <auto member, const char *name> struct Row;
template <typename... Args, zero_rt_status (*zero_rt_calls::*member)(Args...),
          const char *name>
struct Row<member, name> {
  static zero_rt_status run(Args... args) {
    calledRow = name;
    calledWith = {toWord(args)...};
    return static_cast<zero_rt_status>(kAnswer);
  }
};

namespace names {
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS) static constexpr char NAME[] = #NAME;
#include "zero_rt/calls.def"
} // namespace names

/// A table whose program calls are null: no exported function may call those.
zero_rt_calls makeTable() {
  zero_rt_calls table = {};
  table.struct_size = sizeof(table);
  table.abi_version = ZERO_RT_ABI_VERSION;
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  table.NAME = Row<&zero_rt_calls::NAME, names::NAME>::run;
#include "zero_rt/calls.def"
  return table;
}

class ForwarderTest : public testing::Test {
protected:
  void SetUp() override {
    if (!canRun())
      GTEST_SKIP() << "this machine cannot run x86-64-v3";
    LowerOptions options;
    options.mesh = "dp=2";
    ASSERT_EQ(library.open(options), "");
  }

  /// Calls the function of |name| with |object| first and a value of its own
  /// for each other argument; returns what it passed.
  template <typename Subject, typename... Args>
  zero_rt_status call(zero_rt_status (*)(Subject *, Args...), std::string name,
                      void *object, Words &passed) {
    if (name.rfind("step_", 0) == 0)
      name.erase(0, 5);
    auto function = library.get<zero_rt_status (*)(Subject *, Args...)>(name);
    EXPECT_TRUE(function) << name;
    if (!function)
      return ZERO_RT_INTERNAL;
    size_t i = 0;
    std::tuple<Args...> values{makeValue<Args>(i++)...};
    passed = {toWord(object)};
    std::apply([&](auto... args) { (passed.push_back(toWord(args)), ...); },
               values);
    calledRow = nullptr;
    calledWith.clear();
    return std::apply(
        [&](auto... args) {
          return function(static_cast<Subject *>(object), args...);
        },
        values);
  }

  StepLibrary library;
  zero_rt_calls table = makeTable();
  /// What stands for a step or a runtime: all that is read is its first word.
  const zero_rt_calls *object = &table;
};

/// What `create` is to its user.
using CreateFn = zero_rt_status (*)(zero_rt_runtime *, const void *,
                                    zero_rt_step **);
} // namespace

TEST_F(ForwarderTest, EachCallsItsRow) {
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  if (std::string(#NAME) != "step_create") {                                   \
    Words passed;                                                              \
    EXPECT_EQ(int32_t(call(table.NAME, #NAME, &object, passed)), kAnswer)      \
        << #NAME;                                                              \
    EXPECT_STREQ(calledRow, #NAME);                                            \
    EXPECT_EQ(calledWith, passed) << #NAME;                                    \
  }
#include "zero_rt/calls.def"
}

TEST_F(ForwarderTest, CreateAddsTheLibrary) {
  Words passed;
  EXPECT_EQ(int32_t(call(CreateFn(), "create", &object, passed)), kAnswer);
  EXPECT_STREQ(calledRow, "step_create");
  ASSERT_EQ(calledWith.size(), 4u);
  auto *given = reinterpret_cast<const zero_rt_library *>(calledWith[1]);
  EXPECT_EQ(given->struct_size, sizeof(zero_rt_library));
  EXPECT_STREQ(given->name, "train");
  EXPECT_EQ(given->ranks, 2);
  calledWith.erase(calledWith.begin() + 1);
  EXPECT_EQ(calledWith, passed);
}

TEST_F(ForwarderTest, NullIsRefusedWithoutACall) {
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  if (std::string(#NAME) != "step_create") {                                   \
    Words passed;                                                              \
    EXPECT_EQ(call(table.NAME, #NAME, nullptr, passed),                        \
              ZERO_RT_INVALID_ARGUMENT)                                        \
        << #NAME;                                                              \
    EXPECT_EQ(calledRow, nullptr) << #NAME;                                    \
  }
#include "zero_rt/calls.def"
  Words passed;
  EXPECT_EQ(call(CreateFn(), "create", nullptr, passed),
            ZERO_RT_INVALID_ARGUMENT);
}

TEST_F(ForwarderTest, CreateRefusesATableOfAnotherVersion) {
  table.abi_version = ZERO_RT_ABI_VERSION + 1;
  Words passed;
  EXPECT_EQ(call(CreateFn(), "create", &object, passed), ZERO_RT_UNSUPPORTED);
  EXPECT_EQ(calledRow, nullptr);
}
