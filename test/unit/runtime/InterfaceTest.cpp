//===- InterfaceTest.cpp - zero_rt_step_<call> is the row of the table ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function of step.h on a step reads its row of the table behind the first
// word of its first argument, and passes on what it was given. Here the table
// is one of the test's own, without any runtime behind it.
//
//===----------------------------------------------------------------------===//

#include "zero_rt/library.h"
#include "zero_rt/step.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

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

/// What a row answers; no function makes up this status.
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

/// A table whose program calls are null: no function may call those.
zero_rt_calls makeTable() {
  zero_rt_calls table = {};
  table.struct_size = sizeof(table);
  table.abi_version = ZERO_RT_ABI_VERSION;
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  table.NAME = Row<&zero_rt_calls::NAME, names::NAME>::run;
#include "zero_rt/calls.def"
  return table;
}

/// Calls |function| with |object| first and a value of its own for each other
/// argument. Returns what it passed.
template <typename Subject, typename... Args>
zero_rt_status call(zero_rt_status (*function)(Subject *, Args...),
                    void *object, Words &passed) {
  size_t i = 0;
  std::tuple<Args...> values{makeValue<Args>(i++)...};
  passed = {toWord(object)};
  calledRow = nullptr;
  calledWith.clear();
  return std::apply(
      [&](auto... args) {
        (passed.push_back(toWord(args)), ...);
        return function(static_cast<Subject *>(object), args...);
      },
      values);
}

// Two rows have the name of the handle already.
constexpr auto zero_rt_step_step_create = zero_rt_step_create;
constexpr auto zero_rt_step_step_destroy = zero_rt_step_destroy;
} // namespace

TEST(Interface, EachCallsItsRow) {
  zero_rt_calls table = makeTable();
  // What stands for a step or a runtime: all that is read is its first word.
  const zero_rt_calls *object = &table;
  Words passed;
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  EXPECT_EQ(int32_t(call(zero_rt_step_##NAME, &object, passed)), kAnswer)      \
      << #NAME;                                                                \
  EXPECT_STREQ(calledRow, #NAME);                                              \
  EXPECT_EQ(calledWith, passed) << #NAME;
#include "zero_rt/calls.def"
}

TEST(Interface, ATableWithoutTheCallIsRefused) {
  zero_rt_calls table = makeTable();
  const zero_rt_calls *object = &table;
  Words passed;
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  table.struct_size = offsetof(zero_rt_calls, NAME);                           \
  EXPECT_EQ(call(zero_rt_step_##NAME, &object, passed), ZERO_RT_UNSUPPORTED)   \
      << #NAME;                                                                \
  EXPECT_EQ(calledRow, nullptr) << #NAME;                                      \
  EXPECT_EQ(std::string(zero_rt_message()).rfind(#NAME ": the table", 0), 0u)  \
      << zero_rt_message();
#include "zero_rt/calls.def"
}

TEST(Interface, NullIsRefusedWithoutACall) {
  Words passed;
#define ZERO_RT_STEP_CALL(NAME, ARGUMENTS)                                     \
  EXPECT_EQ(call(zero_rt_step_##NAME, nullptr, passed),                        \
            ZERO_RT_INVALID_ARGUMENT)                                          \
      << #NAME;                                                                \
  EXPECT_EQ(calledRow, nullptr) << #NAME;                                      \
  EXPECT_EQ(std::string(zero_rt_message()).rfind(#NAME ": ", 0), 0u)           \
      << zero_rt_message();
#include "zero_rt/calls.def"
}
